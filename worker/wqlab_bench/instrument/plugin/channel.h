/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The output file: frames that the guest sends, and windows, in order.
 *
 *   send NAME LENGTH\n   LENGTH bytes   \n
 *   window NUMBER LENGTH\n   LENGTH bytes   \n
 *   blocks kernel LENGTH\n   LENGTH bytes   \n    at the end: PC and SIZE of each block of the kernel that was executed
 *   lost REASON\n         the guest broke the protocol, and a frame or window is missing
 */
#ifndef WQLAB_CHANNEL_H
#define WQLAB_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { FRAME_MAX = 64 << 20, FRAME_NAME_MAX = 200 };

struct channel {
	FILE *file;
	uint8_t *frame;
	size_t used, room;
	bool is_open, is_too_long;
	unsigned int windows;
};

/* Create the output file. Ends QEMU if that fails. */
void channel_open(struct channel *channel, const char *path);

void channel_begin_frame(struct channel *channel);
void channel_add(struct channel *channel, unsigned int two_bytes);
void channel_end_frame(struct channel *channel, bool is_odd);

/* Write a window whose text is in memory. */
void channel_write_window(struct channel *channel, const char *text, size_t size);

/* Write the blocks of the kernel that were executed, in windows or not. */
void channel_write_blocks(struct channel *channel, const char *text, size_t size);

void channel_write_lost(struct channel *channel, const char *reason);

void channel_close(struct channel *channel);

#endif
