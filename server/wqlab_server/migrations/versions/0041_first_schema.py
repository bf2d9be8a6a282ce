"""Mark the schema from which migrations start.

`migrations.upgrade` creates the tables of a new database from the models. Change them in a later revision.
"""

revision = "0041"
down_revision = None
