/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests of words "key=value" that are written to a file of debugfs.
 *
 *	error = request_read(buffer, count, keys, ARRAY_SIZE(keys), &request) ?:
 *		check(&request) ?: request_run(run, &request);
 *
 * A mistake is a line in the kernel log, so a source defines pr_fmt before it
 * includes this. request_read() and check() return -EINVAL then.
 */
#ifndef WQLAB_REQUEST_H
#define WQLAB_REQUEST_H

#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#define REQUEST_MAX	256

/* A member of a module's struct request, of the size of an unsigned int. */
struct request_key {
	const char *name;
	size_t offset;
	unsigned int least;
	unsigned int most;
	const char * const *names;	/* "most" names, with the values 0, 1, ... */
	bool has_all;			/* the word "all" has the value of "all" */
	unsigned int all;
};

#define REQUEST_NUMBER(member, low, high) \
	{ .name = #member, .offset = offsetof(struct request, member), \
	  .least = (low), .most = (high) }
#define REQUEST_NUMBER_OR_ALL(member, low, high, value) \
	{ .name = #member, .offset = offsetof(struct request, member), \
	  .least = (low), .most = (high), .has_all = true, .all = (value) }
#define REQUEST_NAME(member, names_of, nr_names) \
	{ .name = #member, .offset = offsetof(struct request, member), \
	  .names = (names_of), .most = (nr_names) }

static inline bool request_name(const struct request_key *key, const char *value,
				unsigned int *found)
{
	char names[REQUEST_MAX];
	size_t length = 0;

	for (*found = 0; *found < key->most; (*found)++) {
		if (!strcmp(value, key->names[*found]))
			return true;
		length += scnprintf(names + length, sizeof(names) - length, "%s%s",
				    *found ? ", " : "", key->names[*found]);
	}
	pr_warn("invalid '%s=%s': must be one of %s\n", key->name, value, names);
	return false;
}

static inline bool request_number(const struct request_key *key, const char *value,
				  unsigned int *number)
{
	if (key->has_all && !strcmp(value, "all")) {
		*number = key->all;
		return true;
	}
	if (!kstrtouint(value, 10, number) && *number >= key->least &&
	    *number <= key->most)
		return true;
	pr_warn("invalid '%s=%s': must be %sa number from %u to %u\n", key->name,
		value, key->has_all ? "all or " : "", key->least, key->most);
	return false;
}

static inline bool request_word(const struct request_key *keys, unsigned int nr_keys,
				const char *name, const char *value, void *request)
{
	char names[REQUEST_MAX];
	size_t length = 0;
	unsigned int i, found;

	for (i = 0; i < nr_keys; i++) {
		const struct request_key *key = &keys[i];

		length += scnprintf(names + length, sizeof(names) - length, "%s%s",
				    i ? ", " : "", key->name);
		if (strcmp(name, key->name))
			continue;
		if (!(key->names ? request_name(key, value, &found) :
				   request_number(key, value, &found)))
			return false;
		*(unsigned int *)(request + key->offset) = found;
		return true;
	}
	pr_warn("invalid '%s': must be one of %s\n", name, names);
	return false;
}

/* Set the members that the request names. The others keep their values. */
static inline int request_read(const char __user *buffer, size_t count,
			       const struct request_key *keys, unsigned int nr_keys,
			       void *request)
{
	char text[REQUEST_MAX], *rest = text, *word;

	if (count >= sizeof(text)) {
		pr_warn("request of %zu characters is too long: at most %d\n",
			count, REQUEST_MAX - 1);
		return -EINVAL;
	}
	if (copy_from_user(text, buffer, count))
		return -EFAULT;
	text[count] = '\0';
	while ((word = strsep(&rest, "\n "))) {
		char *value = strchr(word, '=');

		if (!*word)
			continue;
		if (!value) {
			pr_warn("'%s' is not KEY=VALUE\n", word);
			return -EINVAL;
		}
		*value++ = '\0';
		if (!request_word(keys, nr_keys, word, value, request))
			return -EINVAL;
	}
	return 0;
}

/* Do what is requested, or return -EBUSY if another request is being done. */
static inline int request_run(int (*run)(const void *request), const void *request)
{
	static DEFINE_MUTEX(running);
	int error;

	if (!mutex_trylock(&running)) {
		pr_warn("a request is already running\n");
		return -EBUSY;
	}
	error = run(request);
	mutex_unlock(&running);
	return error;
}

#endif
