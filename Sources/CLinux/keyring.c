#define _GNU_SOURCE
#include <errno.h>
#include <linux/keyctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clinux_keyring.h"

// linux/keyctl.h doesn't have the permissions. These are the values of include/linux/key.h.
enum {
  POSSESSOR_VIEW = 0x01000000,
  POSSESSOR_READ = 0x02000000,
  POSSESSOR_SEARCH = 0x08000000,
  POSSESSOR_LINK = 0x10000000,
  OWNER_VIEW = 0x00010000,
};

static long control(int operation, long a, long b, long c, long d) {
  long result = syscall(SYS_keyctl, operation, a, b, c, d);
  return result < 0 ? -errno : result;
}

// Finds a key in the user keyring, and possesses it by a link in this thread's keyring.
static long find_key(const char *description) {
  return control(KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, (long)"user", (long)description,
                 KEY_SPEC_THREAD_KEYRING);
}

static void drop_link(long key) { control(KEYCTL_UNLINK, key, KEY_SPEC_THREAD_KEYRING, 0, 0); }

int64_t clinux_key_read(const char *description, void *buffer, int64_t capacity) {
  long key = find_key(description);
  if (key < 0) return key;
  // Returns the whole length even if the buffer is smaller.
  long length = control(KEYCTL_READ, key, (long)buffer, (long)capacity, 0);
  drop_link(key);
  return length > capacity ? -EMSGSIZE : length;
}

int clinux_key_add(const char *description, const void *payload, int64_t length) {
  // The key isn't added to the user keyring at once: its default permissions there would let more
  // processes read it.
  long key = syscall(SYS_add_key, "user", description, payload, (size_t)length,
                     KEY_SPEC_THREAD_KEYRING);
  if (key < 0) return -errno;
  long result = control(KEYCTL_SETPERM, key,
                        POSSESSOR_VIEW | POSSESSOR_READ | POSSESSOR_SEARCH | POSSESSOR_LINK |
                            OWNER_VIEW, 0, 0);
  if (result >= 0) result = control(KEYCTL_LINK, key, KEY_SPEC_USER_KEYRING, 0, 0);
  drop_link(key);
  return result < 0 ? (int)result : 0;
}

int clinux_key_remove(const char *description) {
  long key = find_key(description);
  if (key < 0) return (int)key;
  long result = control(KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING, 0, 0);
  drop_link(key);
  return result < 0 ? (int)result : 0;
}
