#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clinux_passing.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

int clinux_same_file(int one, int other) {
  enum { DUPFD_QUERY = 1024 + 3, COMPARE_FILES = 0 };  // F_DUPFD_QUERY: Linux 6.10
  int same = fcntl(one, DUPFD_QUERY, other);
  if (same >= 0) return same;
  pid_t own = getpid();
  return syscall(SYS_kcmp, own, own, COMPARE_FILES, (long)one, (long)other) == 0;
}

// The seals are read from the open file, without any file system.
int clinux_is_memory_file(int fd) { return fcntl(fd, F_GET_SEALS) >= 0; }

int clinux_refuse_descriptors(int fd) {
  int off = 0;
  return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) < 0 ? -errno : 0;
}

int64_t clinux_receive(int fd, void *buffer, int64_t capacity, struct clinux_passed *passed) {
  struct iovec area = {buffer, (size_t)capacity};
  // There is room for all descriptors that one message can carry. Without it the kernel would close
  // those that don't fit, and the last close of a socket can take as long as its SO_LINGER.
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(CLINUX_MAX_PASSED * sizeof(int))];
  } control;
  struct msghdr message = {.msg_iov = &area,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  passed->count = 0;
  passed->pid = 0;
  passed->uid = (uid_t)-1;
  ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return -errno;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    if (c->cmsg_type == SCM_CREDENTIALS) {
      struct ucred credentials;
      memcpy(&credentials, CMSG_DATA(c), sizeof credentials);
      passed->pid = credentials.pid;
      passed->uid = credentials.uid;
    } else if (c->cmsg_type == SCM_RIGHTS) {
      int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      if (count > CLINUX_MAX_PASSED - passed->count) count = CLINUX_MAX_PASSED - passed->count;
      memcpy(passed->descriptors + passed->count, CMSG_DATA(c), (size_t)count * sizeof(int));
      passed->count += count;
    }
  }
  return got;
}

int64_t clinux_send_with_descriptor(int fd, const void *bytes, int64_t count, int passed) {
  struct iovec area = {(void *)bytes, (size_t)count};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {.msg_iov = &area,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &passed, sizeof passed);
  ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
  return sent < 0 ? -errno : sent;
}
