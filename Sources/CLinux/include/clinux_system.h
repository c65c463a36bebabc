#ifndef CLINUX_SYSTEM_H
#define CLINUX_SYSTEM_H
#include <stdint.h>
#include <sys/types.h>

int clinux_pidfd_open(pid_t pid);
// Returns a pidfd of a single thread, or -EINVAL before Linux 6.9.
int clinux_pidfd_open_thread(pid_t id);
int clinux_pidfd_getfd(int pidfd, int fd);
int clinux_pidfd_send_signal(int pidfd, int signal);
int clinux_process_mrelease(int pidfd);

// Calls waitid(P_PIDFD, …, WEXITED|WNOHANG). Returns 1 and the status if the process has ended, 0
// if it hasn't, -ECHILD if it isn't a child of this process. kind: 0 exited, 1 killed by a signal.
// Call it only after the pidfd has polled readable: before that it can consume a ptrace stop.
int clinux_reap(int pidfd, int *kind, int *status);

// Makes this process the parent of its descendants' orphans (prctl(2), PR_SET_CHILD_SUBREAPER).
int clinux_become_subreaper(void);
// Ends that, for a program that is executed in this process: execve(2) keeps the attribute, and the
// program wouldn't reap the orphans. If this process was a subreaper from its start, it stays one.
void clinux_stop_being_subreaper(void);
// With 0, limits SIGCHLD to ends (SA_NOCLDSTOP). Otherwise every stop of a traced thread raises
// one, and a hibernation has thousands of stops.
int clinux_report_stops_of_children(int reported);
// Returns the signal that has stopped this child (not a tracer's stop), 0 if it isn't stopped, or
// -errno. The stop isn't consumed, so another waiter still gets it (WNOWAIT).
int clinux_stop_of_child(pid_t pid);
// Stops this process as the signal does by default, a moment later. It does so on a thread of its
// own, so that the caller isn't stopped in the middle of something. The kernel drops the signal in
// an orphaned process group (setpgid(2)), where no shell would continue the process. Returns 0 or
// -errno.
int clinux_stop_by_signal(int number);
// Returns a count that is odd while a stop by clinux_stop_by_signal is in progress. A stop adds 2;
// one that the kernel has dropped adds 4.
unsigned clinux_stop_count(void);
// Calls mlockall(MCL_CURRENT | MCL_ONFAULT): current mappings, mainly the code, stay in memory once
// they have been touched. MCL_FUTURE isn't used, because locked heap can't be freed (MADV_DONTNEED
// is refused).
int clinux_lock_memory(void);
int clinux_unlock_memory(void);
// Sets the number of glibc's arenas, and gives large blocks mappings of their own, which are
// unmapped when they are freed. Otherwise glibc keeps the memory that the compression lanes have
// used (mallopt(3); its threshold grows unless it is set). Call it before the first thread starts,
// which would get an arena of its own. With several, what some threads free leaves fewer holes
// between the blocks that others keep, and threads wait less for each other.
void clinux_keep_heap_small(int arenas);
// Reads the credentials of the other end of a Unix socket (SO_PEERCRED).
int clinux_peer_credentials(int fd, pid_t *pid, uid_t *uid, gid_t *gid);
// Returns a pidfd of the process at the other end of a Unix socket (SO_PEERPIDFD), or -ENOPROTOOPT
// before Linux 6.5.
int clinux_peer_pidfd(int fd);
// Makes a datagram socket report the sender's credentials (SO_PASSCRED); see clinux_receive.
int clinux_pass_credentials(int fd);
// Starts writing a file's dirty pages to disk, without waiting (sync_file_range(2)). A length of 0
// means to the end.
int clinux_start_writeback(int fd, int64_t offset, int64_t length);
// Drops a file's clean pages from the page cache (posix_fadvise(2)).
int clinux_drop_page_cache(int fd);
void clinux_set_thread_name(const char *name);
// Calls open(2) with a mode. Swift can't call the variadic function.
int clinux_open(const char *path, int flags, mode_t mode);
// Calls pipe2(2) with O_CLOEXEC. The function is only declared with _GNU_SOURCE.
int clinux_pipe(int ends[2]);
// For names in an open directory. O_PATH is only defined with _GNU_SOURCE.
enum { CLINUX_O_PATH = 010000000 };
#ifdef __aarch64__
enum { CLINUX_O_DIRECT = 0200000 };
#else
enum { CLINUX_O_DIRECT = 040000 };
#endif
int clinux_open_at(int directory, const char *path, int flags, mode_t mode);
// Extended attributes (xattr(7)): `length` bytes are read or written. Writing 0 bytes removes the
// attribute.
int clinux_read_attribute(int fd, const char *name, void *value, size_t length);
int clinux_write_attribute(int fd, const char *name, const void *value, size_t length);
#endif
