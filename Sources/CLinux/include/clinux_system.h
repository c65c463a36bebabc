#ifndef CLINUX_SYSTEM_H
#define CLINUX_SYSTEM_H
#include <stdint.h>
#include <sys/types.h>

int clinux_pidfd_open(pid_t pid);
int clinux_pidfd_getfd(int pidfd, int fd);
int clinux_pidfd_send_signal(int pidfd, int signal);
int clinux_process_mrelease(int pidfd);

// waitid(P_PIDFD, …, WEXITED|WNOHANG). Returns 1 and the status when the process has ended, 0 when
// it hasn't; -ECHILD when it isn't a child of this process. kind: 0 exited, 1 killed by a signal. Only after the
// pidfd has polled readable: before that it can steal a ptrace stop.
int clinux_reap(int pidfd, int *kind, int *status);

// Makes this process the parent of its descendants' orphans (prctl(2), PR_SET_CHILD_SUBREAPER).
int clinux_become_subreaper(void);
// 0: limits SIGCHLD to ends (SA_NOCLDSTOP). Otherwise every stop of a traced thread raises one, and a
// hibernation has thousands.
int clinux_report_stops_of_children(int reported);
// The signal that has stopped this child (not a tracer's stop); 0: it isn't stopped. -errno. Takes nothing away
// from another waiter (WNOWAIT).
int clinux_stop_of_child(pid_t pid);
// Stops this process as the signal does by default, a moment later: from a thread of its own, so that the caller isn't
// stopped in the middle of something. The kernel drops the signal in an orphaned process group (setpgid(2)), where no
// shell would continue the process. -errno.
int clinux_stop_by_signal(int number);
// Odd while a stop by clinux_stop_by_signal is under way. A stop adds 2, one that the kernel has dropped 4.
unsigned clinux_stop_count(void);
// mlockall(MCL_CURRENT | MCL_ONFAULT): current mappings, mainly the code, stay in memory once they
// have been touched. Not MCL_FUTURE: locked heap can't be freed (MADV_DONTNEED is refused).
int clinux_lock_memory(void);
int clinux_unlock_memory(void);
// One arena, and large blocks in their own mappings, which are unmapped when they are freed. Otherwise glibc keeps
// the memory that the compression lanes have used (mallopt(3); its threshold grows unless it is set). Before the first
// thread, which would get an arena of its own.
void clinux_keep_heap_small(void);
// SO_PEERCRED.
int clinux_peer_credentials(int fd, pid_t *pid, uid_t *uid, gid_t *gid);
// Makes a datagram socket report the sender's credentials (SO_PASSCRED); see clinux_receive.
int clinux_pass_credentials(int fd);
// Starts writing a file's dirty pages to disk, without waiting (sync_file_range(2)). Length 0: to the end.
int clinux_start_writeback(int fd, int64_t offset, int64_t length);
// Drops a file's clean pages from the page cache (posix_fadvise(2)).
int clinux_drop_page_cache(int fd);
void clinux_set_thread_name(const char *name);
// open() with a mode; Swift can't call the variadic one.
int clinux_open(const char *path, int flags, mode_t mode);
// pipe2(2), close-on-exec; it is behind _GNU_SOURCE.
int clinux_pipe(int ends[2]);
// For names in a directory that is held open. O_PATH is behind _GNU_SOURCE.
enum { CLINUX_O_PATH = 010000000 };
int clinux_open_at(int directory, const char *path, int flags, mode_t mode);
// Extended attributes (xattr(7)): `length` bytes are read or written; 0 bytes remove the attribute.
int clinux_read_attribute(int fd, const char *name, void *value, size_t length);
int clinux_write_attribute(int fd, const char *name, const void *value, size_t length);
#endif
