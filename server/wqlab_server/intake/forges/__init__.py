"""Pull requests and pushes of forges become submissions.

An event only says that something has changed; what it is, the forge's API says. So it does not matter in which order
events arrive.
"""
