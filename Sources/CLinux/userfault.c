#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clinux_userfault.h"

#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

_Static_assert(sizeof(struct clinux_uffd_message) == sizeof(struct uffd_msg), "uffd_msg");

int clinux_uffd_negotiate(int fd, int tracks) {
  struct uffdio_api api = {
      .api = UFFD_API,
      .features = UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |
                  UFFD_FEATURE_EVENT_UNMAP | (tracks ? UFFD_FEATURE_WP_ASYNC : 0),
  };
  return ioctl(fd, UFFDIO_API, &api) < 0 ? -errno : 0;
}

int clinux_uffd_state(int fd) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  int info = open(path, O_RDONLY | O_CLOEXEC);
  if (info < 0) return -errno;
  ssize_t length = read(info, text, sizeof text - 1);
  int code = errno;
  close(info);
  if (length < 0) return -code;
  text[length] = 0;
  // The line has the API, the enabled features, and the features that the kernel supports, in
  // hexadecimal.
  const char *line = strstr(text, "API:");
  unsigned long long api, features;
  if (!line || sscanf(line, "API:%llx:%llx", &api, &features) != 2) return -EINVAL;
  if (!features) return CLINUX_UFFD_NEW;
  return features & UFFD_FEATURE_WP_ASYNC ? CLINUX_UFFD_TRACKING : CLINUX_UFFD_IN_USE;
}

int clinux_uffd_register(int fd, uint64_t start, uint64_t length, int tracks) {
  struct uffdio_register argument = {
      .range = {.start = start, .len = length},
      .mode = UFFDIO_REGISTER_MODE_MISSING | (tracks ? UFFDIO_REGISTER_MODE_WP : 0)};
  if (ioctl(fd, UFFDIO_REGISTER, &argument) < 0) return -errno;
  uint64_t needed = 1ull << _UFFDIO_COPY | 1ull << _UFFDIO_ZEROPAGE | 1ull << _UFFDIO_WAKE;
  return (argument.ioctls & needed) == needed ? 0 : -EOPNOTSUPP;
}

int clinux_uffd_unregister(int fd, uint64_t start, uint64_t length) {
  struct uffdio_range range = {.start = start, .len = length};
  if (ioctl(fd, UFFDIO_UNREGISTER, &range) < 0) return -errno;
  // The kernel wakes the threads that wait before it acquires the mapping's own lock, so a thread
  // can begin to wait in between and isn't woken (seen on Linux 6.18). From here on no thread can
  // begin to wait.
  ioctl(fd, UFFDIO_WAKE, &range);
  return 0;
}

int64_t clinux_uffd_copy(int fd, uint64_t target, const void *source, uint64_t length,
                         int protects, int wakes) {
  struct uffdio_copy argument = {
      .dst = target, .src = (uint64_t)(uintptr_t)source, .len = length,
      .mode = (protects ? UFFDIO_COPY_MODE_WP : 0) | (wakes ? 0 : UFFDIO_COPY_MODE_DONTWAKE)};
  if (ioctl(fd, UFFDIO_COPY, &argument) == 0) return (int64_t)length;
  int code = errno;
  return argument.copy > 0 ? argument.copy : -code;
}

int64_t clinux_uffd_zero(int fd, uint64_t target, uint64_t length) {
  struct uffdio_zeropage argument = {.range = {.start = target, .len = length}};
  if (ioctl(fd, UFFDIO_ZEROPAGE, &argument) == 0) return (int64_t)length;
  int code = errno;
  return argument.zeropage > 0 ? argument.zeropage : -code;
}

int clinux_uffd_wake(int fd, uint64_t start, uint64_t length) {
  struct uffdio_range range = {.start = start, .len = length};
  return ioctl(fd, UFFDIO_WAKE, &range) < 0 ? -errno : 0;
}

int clinux_uffd_event_in_flight(int fd) {
  // A copy of no bytes is invalid, but the kernel checks for an event in flight before that.
  struct uffdio_copy nothing = {0};
  return ioctl(fd, UFFDIO_COPY, &nothing) < 0 && errno == EAGAIN;
}

int clinux_uffd_make_nonblocking(int fd) {
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return -errno;
  if (flags & O_NONBLOCK) return 0;
  return fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 1;
}

int clinux_uffd_read(int fd, volatile struct clinux_uffd_message *message) {
  struct iovec part = {.iov_base = (void *)message, .iov_len = sizeof *message};
  ssize_t got = preadv2(fd, &part, 1, -1, RWF_NOWAIT);
  if (got < 0 && errno == EOPNOTSUPP) {
    // Linux before 6.10 can't read without waiting if the flag is cleared right after this.
    if (clinux_uffd_make_nonblocking(fd) < 0) return -errno;
    got = read(fd, (void *)message, sizeof *message);
  }
  if (got < 0) return errno == EAGAIN || errno == EINTR ? 0 : -errno;
  return got == (ssize_t)sizeof *message;
}

int clinux_open_userfault(int device) {
  int flags = O_CLOEXEC | O_NONBLOCK;
  int fd = device < 0 ? (int)syscall(SYS_userfaultfd, flags)
                      : ioctl(device, _IO(0xAA, 0x00) /* USERFAULTFD_IOC_NEW */, flags);
  return fd < 0 ? -errno : fd;
}

int clinux_try_userfaultfd(void) {
  int fd = clinux_open_userfault(-1);
  if (fd >= 0) return close(fd), 0;
  int code = fd;
  int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device < 0) return code;
  fd = clinux_open_userfault(device);
  close(device);
  if (fd < 0) return code;
  return close(fd), 1;
}

int clinux_may_follow_forks(void) {
  // Every user may open this kind (Linux 5.11), so only the features are tried.
  int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1 /* UFFD_USER_MODE_ONLY */);
  if (fd < 0 && errno == EINVAL) fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -errno;
  int result = clinux_uffd_negotiate(fd, 0);
  close(fd);
  return result;
}

int64_t clinux_userfault_syscall_number(int which) {
  switch (which) {
    case CLINUX_SYS_userfaultfd: return SYS_userfaultfd;
    case CLINUX_SYS_fcntl: return SYS_fcntl;
    case CLINUX_SYS_close: return SYS_close;
    case CLINUX_SYS_openat: return SYS_openat;
    case CLINUX_SYS_ioctl: return SYS_ioctl;
    case CLINUX_SYS_socketpair: return SYS_socketpair;
    case CLINUX_SYS_recvmsg: return SYS_recvmsg;
  }
  return -ENOSYS;
}

uint64_t clinux_inode(int fd) {
  struct stat status;
  return fstat(fd, &status) < 0 ? 0 : status.st_ino;
}

uint64_t clinux_inode_at(const char *path) {
  struct stat status;
  return stat(path, &status) < 0 ? 0 : status.st_ino;
}

int clinux_is_private_memfd(int fd, uint64_t size) {
  struct stat status;
  int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &status) == 0 &&
         (uint64_t)status.st_size == size && status.st_uid == geteuid() &&
         !(status.st_mode & (S_IRWXG | S_IRWXO));
}

int clinux_is_memfd(int fd) {
  struct statx theirs, ours;
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &theirs) < 0) return -errno;
  int own = (int)syscall(SYS_memfd_create, "dormouse", 1u /* MFD_CLOEXEC */);
  if (own < 0) return -errno;
  int result = statx(own, "", AT_EMPTY_PATH, STATX_TYPE, &ours) < 0 ? -errno : 0;
  close(own);
  if (result < 0) return result;
  return (theirs.stx_mode & S_IFMT) == S_IFREG && theirs.stx_dev_major == ours.stx_dev_major &&
         theirs.stx_dev_minor == ours.stx_dev_minor;
}
