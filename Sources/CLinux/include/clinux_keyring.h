#ifndef CLINUX_KEYRING_H
#define CLINUX_KEYRING_H
#include <stdint.h>

// The kernel's key retention service (keyrings(7)): the user keyring of the calling process. It is
// found by user ID, so it is the same in every session, and is lost at a reboot.
//
// A key is owned by the user, but readable only for a process that *possesses* it (that can reach
// it from one of its keyrings). The session keyring needn't lead to the user keyring: it doesn't
// under sudo, su or in a systemd unit. So all of these functions use a link in the calling thread's
// own keyring.

// Copies the key called `description`. Returns its length, -ENOKEY if there is none (or
// -EKEYREVOKED, -EKEYEXPIRED), -EMSGSIZE if it is longer than the buffer.
int64_t clinux_key_read(const char *description, void *buffer, int64_t capacity);
// Makes a key that only its owner can find and read. It replaces a key with the same description.
int clinux_key_add(const char *description, const void *payload, int64_t length);
// Removes the key.
int clinux_key_remove(const char *description);
#endif
