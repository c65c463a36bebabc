#ifndef CLINUX_KEYRING_H
#define CLINUX_KEYRING_H
#include <stdint.h>

// The kernel's key retention service (keyrings(7)): the user keyring of the calling process. It is found
// by user id, so it is the same in every session, and is lost at a reboot.
//
// A key is owned by the user, but readable only for a process that *possesses* it (reaches it from one of
// its keyrings), and the session keyring needn't lead to the user keyring: not under sudo, su or in a
// systemd unit. So all of these go by way of the calling thread's own keyring.

// Copies the key called `description`. Returns its length, -ENOKEY where there is none (or
// -EKEYREVOKED, -EKEYEXPIRED), -EMSGSIZE where it is longer than the buffer.
int64_t clinux_key_read(const char *description, void *buffer, int64_t capacity);
// Makes a key that only its owner can find and read; one of that description is replaced.
int clinux_key_add(const char *description, const void *payload, int64_t length);
// Removes the key.
int clinux_key_remove(const char *description);
#endif
