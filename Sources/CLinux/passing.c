#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clinux_passing.h"

int64_t clinux_receive_with_descriptor(int fd, void *buffer, int64_t capacity, int *passed) {
  struct iovec area = {buffer, (size_t)capacity};
  // 253: SCM_MAX_FD, the kernel's own limit: with less room it would say only that some were lost.
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(253 * sizeof(int))];
  } control;
  struct msghdr message = {.msg_iov = &area,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  *passed = -1;
  ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return -errno;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    for (int i = 0; i < count; i++) {
      int descriptor;
      memcpy(&descriptor, CMSG_DATA(c) + i * sizeof(int), sizeof descriptor);
      if (*passed >= 0) close(*passed);
      *passed = descriptor;
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
