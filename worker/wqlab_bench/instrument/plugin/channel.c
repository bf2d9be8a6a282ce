/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "channel.h"

#include <errno.h>
#include <string.h>

#include "memory.h"

enum { FIRST_ROOM = 4096 };

void channel_open(struct channel *channel, const char *path)
{
	memset(channel, 0, sizeof(*channel));
	channel->file = fopen(path, "w");
	if (!channel->file)
		die("cannot create %s: %s", path, strerror(errno));
}

/* Results on a full disk must not look like results of a guest that sent none. */
static void flush(struct channel *channel)
{
	if (fflush(channel->file) || ferror(channel->file))
		die("cannot write the output file: %s", strerror(errno));
}

static void write_record(struct channel *channel, const char *kind, const char *name, const void *bytes, size_t size)
{
	fprintf(channel->file, "%s %s %zu\n", kind, name, size);
	fwrite(bytes, 1, size, channel->file);
	fputc('\n', channel->file);
	flush(channel);
}

void channel_write_lost(struct channel *channel, const char *reason)
{
	fprintf(channel->file, "lost %s\n", reason);
	flush(channel);
}

void channel_begin_frame(struct channel *channel)
{
	if (channel->is_open)
		channel_write_lost(channel, "a frame began before the one before it ended");
	channel->used = 0;
	channel->is_open = true;
	channel->is_too_long = false;
}

void channel_add(struct channel *channel, unsigned int two_bytes)
{
	if (!channel->is_open)
		return;
	if (channel->used + 2 > FRAME_MAX) {
		channel->is_too_long = true;
		return;
	}
	if (channel->used + 2 > channel->room) {
		channel->room = channel->room ? channel->room * 2 : FIRST_ROOM;
		channel->frame = resize(channel->frame, channel->room, 1);
	}
	channel->frame[channel->used++] = two_bytes & 0xff;
	channel->frame[channel->used++] = two_bytes >> 8 & 0xff;
}

/* Return true if a name has only printable ASCII characters, no space, and at most FRAME_NAME_MAX of them. */
static bool is_name(const char *name)
{
	size_t size = strlen(name);

	for (size_t i = 0; i < size; i++)
		if (name[i] < 0x21 || name[i] > 0x7e)
			return false;
	return size && size <= FRAME_NAME_MAX;
}

void channel_end_frame(struct channel *channel, bool is_odd)
{
	const char *name = (const char *)channel->frame;
	const uint8_t *zero;

	if (!channel->is_open)
		return channel_write_lost(channel, "a frame ended that had not begun");
	channel->is_open = false;
	if (channel->is_too_long)
		return channel_write_lost(channel, "a frame was longer than 64 MiB");
	channel->used -= is_odd && channel->used;
	zero = channel->used ? memchr(channel->frame, 0, channel->used) : NULL;
	if (!zero || !is_name(name))
		return channel_write_lost(channel, "a frame had no valid name");
	write_record(channel, "send", name, zero + 1, channel->frame + channel->used - (zero + 1));
}

void channel_write_window(struct channel *channel, const char *text, size_t size)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", ++channel->windows);
	write_record(channel, "window", number, text, size);
}

void channel_write_blocks(struct channel *channel, const char *text, size_t size)
{
	write_record(channel, "blocks", "kernel", text, size);
}

void channel_close(struct channel *channel)
{
	if (channel->is_open)
		channel_write_lost(channel, "the guest ended within a frame");
	flush(channel);
	fclose(channel->file);
	channel->file = NULL;
}
