#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "CWorkerKit.h"

static int set_up(int fd) {
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) return -errno;
#ifdef SO_NOSIGPIPE
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
  return 0;
}

static int make_socket(void) {
#ifdef SOCK_CLOEXEC
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
#else
  return socket(AF_UNIX, SOCK_STREAM, 0);
#endif
}

int workerkit_connect(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(path);
  if (length == 0) return -EINVAL;
  if (length >= sizeof address.sun_path) return -ENAMETOOLONG;
  memcpy(address.sun_path, path, length);
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
  if (path[0] == '@') address.sun_path[0] = 0;
  else size += 1;
  int fd = make_socket();
  if (fd < 0) return -errno;
  int result = connect(fd, (struct sockaddr *)&address, size) < 0 ? -errno : set_up(fd);
  if (result < 0) close(fd);
  return result < 0 ? result : fd;
}

int64_t workerkit_send(int socket, const void *bytes, int64_t length, int descriptor) {
  struct iovec part = {(void *)bytes, (size_t)length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control;
  if (descriptor >= 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = control.space;
    message.msg_controllen = sizeof control.space;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  int flags = MSG_DONTWAIT;
#ifdef MSG_NOSIGNAL
  flags |= MSG_NOSIGNAL;
#endif
  ssize_t sent;
  do sent = sendmsg(socket, &message, flags);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : sent;
}

int64_t workerkit_receive(int socket, void *bytes, int64_t capacity) {
  ssize_t count;
  do count = recv(socket, bytes, (size_t)capacity, MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : count;
}

const int workerkit_again = EAGAIN;

void workerkit_shut(int socket) { shutdown(socket, SHUT_RDWR); }

void workerkit_close(int descriptor) { close(descriptor); }

int workerkit_pipe(int *reading, int *writing) {
  int ends[2];
#ifdef __linux__
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return -errno;
#else
  if (pipe(ends) < 0) return -errno;
  set_up(ends[0]);
  set_up(ends[1]);
#endif
  *reading = ends[0];
  *writing = ends[1];
  return 0;
}

int workerkit_wait(int socket, int for_writing, int pipe, int timeout) {
  struct pollfd entries[2] = {
      {.fd = pipe, .events = POLLIN},
      {.fd = socket, .events = (short)(POLLIN | (for_writing ? POLLOUT : 0))},
  };
  int count = poll(entries, 2, timeout);
  if (count < 0) return errno == EINTR ? 0 : -errno;
  int found = 0;
  if (entries[0].revents) {
    char bytes[64];
    while (read(pipe, bytes, sizeof bytes) == sizeof bytes) continue;
    found |= WORKERKIT_WOKEN;
  }
  if (entries[1].revents & ~POLLOUT) found |= WORKERKIT_READABLE;
  if (entries[1].revents & POLLOUT) found |= WORKERKIT_WRITABLE;
  return found;
}

void workerkit_wake(int pipe) {
  // A full pipe wakes the thread, too.
  while (write(pipe, "", 1) < 0 && errno == EINTR) continue;
}

int64_t workerkit_read_file(const char *path, void *buffer, int64_t capacity) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  int64_t length = 0;
  while (length < capacity) {
    ssize_t count = read(fd, (char *)buffer + length, (size_t)(capacity - length));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) length = -errno;
    if (count <= 0) break;
    length += count;
  }
  close(fd);
  return length;
}

void workerkit_print_error(const char *text, int64_t length) {
  while (length > 0) {
    ssize_t count = write(2, text, (size_t)length);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text += count;
    length -= count;
  }
}
