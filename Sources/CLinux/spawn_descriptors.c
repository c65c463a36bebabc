// The descriptors of a new process, between its fork and its execve. Only async-signal-safe calls.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spawn_descriptors.h"

// Moves a descriptor above 0, 1 and 2, so that the dup2 calls can't overwrite it.
int clinux_above_standard(int fd) {
  return fd > 2 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

// Gives the descriptors their numbers. All of them are moved above these numbers first, because one
// may have the number that another will get, and so may the report pipe.
int clinux_renumber(const struct clinux_terms *terms, int *report) {
  int moved[CLINUX_MAX_PLACED];
  int above = 3;
  for (int index = 0; index < terms->placed_count; index++)
    if (terms->placed[index].number >= above) above = terms->placed[index].number + 1;
  int away = fcntl(*report, F_DUPFD_CLOEXEC, above);
  if (away < 0) return -1;
  *report = away;
  for (int index = 0; index < terms->placed_count; index++) {
    moved[index] = fcntl(terms->placed[index].descriptor, F_DUPFD_CLOEXEC, above);
    if (moved[index] < 0) return -1;
  }
  // The parent's descriptors at these numbers would be closed anyway.
  for (int index = 0; index < terms->placed_count; index++)
    if (dup2(moved[index], terms->placed[index].number) < 0) return -1;
  return 0;
}

// Returns the smallest number from `from` on of a descriptor that the program gets, or that the
// child still needs; ~0U if there is none.
static unsigned next_needed(const struct clinux_spawn *what, int report, unsigned from) {
  unsigned next = ~0U;
  if ((unsigned)report >= from) next = (unsigned)report;
  for (int index = 0; index < what->kept_count; index++) {
    unsigned number = (unsigned)what->kept[index];
    if (number >= from && number < next) next = number;
  }
  for (int index = 0; what->terms && index < what->terms->placed_count; index++) {
    unsigned number = (unsigned)what->terms->placed[index].number;
    if (number >= from && number < next) next = number;
  }
  return next;
}

// Closes all other descriptors. A child that waits must not keep open what its parent closes
// meanwhile: a client would wait for the end of its connection, and a worker's memory would stay
// registered with a userfaultfd. Kernels before 5.9, without close_range, close them at the execve.
void clinux_close_others(const struct clinux_spawn *what, int report) {
  for (unsigned first = 3;;) {
    unsigned needed = next_needed(what, report, first);
    if (needed > first && syscall(SYS_close_range, first, needed == ~0U ? ~0U : needed - 1, 0) < 0)
      return;
    if (needed == ~0U) return;
    first = needed + 1;
  }
}
