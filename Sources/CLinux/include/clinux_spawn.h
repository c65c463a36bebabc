#ifndef CLINUX_SPAWN_H
#define CLINUX_SPAWN_H
#include <stdint.h>
#include <sys/types.h>

// The parameters for the start of a new worker. The caller prepares everything: between fork and
// exec nothing may allocate or lock.
struct clinux_spawn {
  const char *path;
  char *const *arguments;  // NULL-terminated
  char *const *environment;  // NULL-terminated; NULL: this process's, byte for byte
  const char *directory;
  int input, output, error;  // become 0, 1, 2
  int cgroup;  // descriptor of the cgroup to start in, or -1
  // The next five are for a program that runs instead of another (`dormouse wrap`). Otherwise they
  // are 0, and `announcement` is -1.
  const int *kept;  // descriptors that stay open under their numbers
  int kept_count;
  uint64_t ignored;  // signals to ignore: N in bit N-1
  int announcement;  // a descriptor to which the pid is written, four bytes, before execve; or -1
  // it stays in this process's session and process group, and keeps the terminal
  int keeps_session;
  const struct clinux_terms *terms;  // NULL: they are the same as this process's
  int oom_score;  // oom_score_adj: -1000…1000, or one of the next two
  int waits;  // it waits for clinux_spawn_release before it executes the program
  int permits_tracing;  // Yama lets every process of its user trace it (PR_SET_PTRACER)
};
enum {
  CLINUX_OOM_SCORE_USUAL = 10000,  // the value set by clinux_set_spawn_oom_score
  CLINUX_OOM_SCORE_KEPT = 10001,  // this process's value
};

// The properties in which a new process differs from this one, other than its files.
struct clinux_terms {
  int changes_identity;  // the next fields are used, which needs root
  uid_t user;
  gid_t group;
  const gid_t *groups;  // all supplementary groups
  int group_count;
  const struct clinux_limit { int resource; uint64_t soft, hard; } *limits;  // setrlimit(2)
  int limit_count;
  // Descriptors of this process that get these numbers, 3 or higher. There are at most
  // CLINUX_MAX_PLACED.
  const struct clinux_placed { int descriptor, number; } *placed;
  int placed_count;
  int umask;  // or -1
  int new_keyring;  // the process joins a new session keyring
  // Pointers into `environment` at which the pid is written. Each has room for ten digits and a
  // NUL. There are at most CLINUX_MAX_PID_VARIABLES.
  char *const *pid_digits;
  int pid_digits_count;
};
enum { CLINUX_MAX_PLACED = 768, CLINUX_MAX_PID_VARIABLES = 4 };

// The steps that can fail, for the error message.
enum {
  CLINUX_SPAWN_FORK = 1,
  CLINUX_SPAWN_SESSION,
  CLINUX_SPAWN_DIRECTORY,
  CLINUX_SPAWN_DESCRIPTORS,
  CLINUX_SPAWN_EXEC,
  CLINUX_SPAWN_IDENTITY = 8,
  CLINUX_SPAWN_LIMIT,  // the bits from 8 on are the index of the limit
  CLINUX_SPAWN_KEYRING,
  CLINUX_SPAWN_OOM_SCORE,
};

// Sets the oom_score_adj (-1000…1000) that spawned processes usually get. Otherwise they inherit
// that of a daemon, whose own value may be lower. Call it once, before other threads spawn.
void clinux_set_spawn_oom_score(int adjustment);

// Raises this process's limit on descriptors to the hard limit, 65,536 at most: a worker needs
// seven or more. Spawned processes get the earlier limit, because some programs use select(2).
void clinux_raise_descriptor_limit(void);

// A child between fork and execve.
struct clinux_birth {
  int pidfd;  // polls readable when the process has ended; -1: the kernel gave none
  // Polls readable when the child has executed the program (end of file), has failed (two ints: the
  // step, and errno), or has ended. Reading it doesn't block.
  int report;
  pid_t parent;
  int *step;  // shared with the child; see clinux_spawn_step. The next int is 1 after the release
};

// Begins to start a process, in a session of its own unless `keeps_session`, with default signal
// dispositions, no blocked signal, and no descriptor except 0, 1 and 2. Returns its pid, or -errno
// if the fork failed. It doesn't wait for the child: steps after the fork may take without limit (a
// stopped child, a file system that doesn't answer). Call it on a thread that lives as long as the
// daemon: until the child executes the program, it ends with the thread that forked it
// (PR_SET_PDEATHSIG).
pid_t clinux_spawn_begin(const struct clinux_spawn *what, struct clinux_birth *birth);
// Returns the last step that the child has begun.
int clinux_spawn_step(const struct clinux_birth *birth);
// Lets a child that `waits` execute the program. Calling it again does nothing.
void clinux_spawn_release(const struct clinux_birth *birth);
// Frees the shared memory. The caller owns the descriptors.
void clinux_spawn_forget(struct clinux_birth *birth);
// Prevents core files of this process by its limit, and removes its memory from a core file that a
// handler in /proc/sys/kernel/core_pattern gets nevertheless (core(5)). Spawned processes get the
// limit and the filter that this process had before.
void clinux_stay_out_of_core_files(void);
// Restores the limits and the filter that this process had before, for a program that is executed
// in this process.
void clinux_restore_limits(void);


// Gives the calling thread another user's rights in the file system (setfsuid(2), and setgroups(2)
// for this thread alone). Only root may do that. Returns -EPERM if it had no effect.
int clinux_act_as(uid_t user, gid_t group, const gid_t *groups, int group_count);

// Calls fork(2), which Swift doesn't import. Call it only while the process has one thread.
pid_t clinux_fork(void);
// Returns the set of ignored signals, with signal N in bit N-1. Unless this process has changed
// them, they are inherited.
uint64_t clinux_ignored_signals(void);
// Ends this process by the signal, without a core file, so that its parent sees the signal that
// ended the wrapped program. It returns only if that is impossible.
void clinux_end_by_signal(int signal);
#endif
