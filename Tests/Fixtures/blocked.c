// One thread, blocked in exactly one system call.
//
//   blocked KIND [ARGUMENT]      prints what the waker needs, then `ready PID`, then blocks;
//                                woken, prints `KIND ok …`, or `KIND failed rc=N errno=N (TEXT)`
//   blocked poke KIND ARGUMENT   wakes the kinds that no file descriptor or signal can wake
//
// KIND          blocked in                        woken by
// pipe          read(0)                           a byte at its stdin
// epoll         epoll_wait(stdin, -1)             a byte at its stdin
// poll          poll(stdin, -1)                   a byte at its stdin
// select        select(stdin)                     a byte at its stdin
// accept        accept; prints `port N` first     a connection to 127.0.0.1:N
// recvtimeo     recv, SO_RCVTIMEO of 10 minutes;  a UDP datagram to 127.0.0.1:N
//               prints `port N` first
// futex FILE    futex wait on the first word of   blocked poke futex FILE
//               FILE, mapped shared (made if absent)
// semop         semop; prints `semid N` first     blocked poke semop N
// sigtimedwait  sigtimedwait, limit 10 minutes    SIGUSR1
// nanosleep [S] nanosleep of S seconds (3), once  itself; prints `nanosleep ok rc=0 remaining=N`,
//               where N isn't 0 after a stop: the kernel reports the remaining time, and continues
//
// The call begins shortly after `ready`: /proc/PID/syscall shows when it has begun.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const char *kind;

static int failed(long result) {
  int error = result < 0 ? errno : 0;
  printf("%s failed rc=%ld errno=%d (%s)\n", kind, result, error, strerror(error));
  return 1;
}

static int finish(int is_right, long result) {
  if (!is_right) return failed(result);
  printf("%s ok\n", kind);
  return 0;
}

static void ready(void) { printf("ready %d\n", getpid()); }

static int wait_pipe(void) {
  char byte;
  ready();
  ssize_t n = read(0, &byte, 1);
  return finish(n == 1, n);
}

static int wait_epoll(void) {
  int fd = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  if (epoll_ctl(fd, EPOLL_CTL_ADD, 0, &event)) return failed(-1);
  ready();
  int n = epoll_wait(fd, &event, 1, -1);
  return finish(n == 1 && event.events == EPOLLIN, n);
}

static int wait_poll(void) {
  struct pollfd one = {.fd = 0, .events = POLLIN};
  ready();
  int n = poll(&one, 1, -1);
  return finish(n == 1 && one.revents == POLLIN, n);
}

static int wait_select(void) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(0, &set);
  ready();
  int n = select(1, &set, NULL, NULL, NULL);
  return finish(n == 1 && FD_ISSET(0, &set), n);
}

static int loopback(int type) {
  int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  struct sockaddr_in here = {.sin_family = AF_INET};
  socklen_t length = sizeof here;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || bind(fd, (struct sockaddr *)&here, length)) return -1;
  if (getsockname(fd, (struct sockaddr *)&here, &length)) return -1;
  printf("port %d\n", ntohs(here.sin_port));
  return fd;
}

static int wait_accept(void) {
  int fd = loopback(SOCK_STREAM);
  if (fd < 0 || listen(fd, 8)) return failed(-1);
  ready();
  int connection = accept(fd, NULL, NULL);
  return finish(connection >= 0, connection);
}

static int wait_recvtimeo(void) {
  int fd = loopback(SOCK_DGRAM);
  struct timeval limit = {.tv_sec = 600};
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit)) return failed(-1);
  char bytes[16];
  ready();
  ssize_t n = recv(fd, bytes, sizeof bytes, 0);
  return finish(n > 0, n);
}

static uint32_t *shared_word(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 4096)) return NULL;
  void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? NULL : at;
}

static int wait_futex(const char *path) {
  volatile uint32_t *word = shared_word(path);
  if (!word) return failed(-1);
  uint32_t before = *word;
  ready();
  long result = syscall(SYS_futex, word, FUTEX_WAIT, before, NULL, NULL, 0);
  return finish(result == 0 && *word != before, result);
}

static int poke_futex(const char *path) {
  uint32_t *word = shared_word(path);
  if (!word) return failed(-1);
  __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
  long woken = syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
  return finish(woken == 1, woken);
}

static int wait_semop(void) {
  int id = semget(IPC_PRIVATE, 1, 0600);
  if (id < 0) return failed(id);
  printf("semid %d\n", id);
  ready();
  struct sembuf take = {.sem_op = -1};
  int result = semop(id, &take, 1);
  int exit_code = finish(result == 0, result);
  semctl(id, 0, IPC_RMID);
  return exit_code;
}

static int poke_semop(const char *id) {
  struct sembuf give = {.sem_op = 1};
  int result = semop(atoi(id), &give, 1);
  return finish(result == 0, result);
}

static int wait_sigtimedwait(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  struct timespec limit = {600, 0};
  ready();
  int result = sigtimedwait(&set, NULL, &limit);
  return finish(result == SIGUSR1, result);
}

static int wait_nanosleep(const char *seconds) {
  double length = seconds ? atof(seconds) : 3;
  struct timespec wanted = {(time_t)length, (long)((length - (double)(time_t)length) * 1e9)};
  struct timespec left = {0, 0};
  ready();
  int result = nanosleep(&wanted, &left);
  if (result) return failed(result);
  printf("nanosleep ok rc=%d remaining=%.3f\n", result, (double)left.tv_sec + left.tv_nsec / 1e9);
  return 0;
}

static int is_kind(const char *name) { return !strcmp(kind, name); }

int main(int count, char **arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  int poke = count == 4 && !strcmp(arguments[1], "poke");
  kind = count < 2 ? "" : arguments[poke ? 2 : 1];
  const char *argument = poke ? arguments[3] : count == 3 ? arguments[2] : NULL;
  if (poke && is_kind("futex")) return poke_futex(argument);
  if (poke && is_kind("semop")) return poke_semop(argument);
  if (!poke && is_kind("pipe")) return wait_pipe();
  if (!poke && is_kind("epoll")) return wait_epoll();
  if (!poke && is_kind("poll")) return wait_poll();
  if (!poke && is_kind("select")) return wait_select();
  if (!poke && is_kind("accept")) return wait_accept();
  if (!poke && is_kind("recvtimeo")) return wait_recvtimeo();
  if (!poke && is_kind("futex") && argument) return wait_futex(argument);
  if (!poke && is_kind("semop")) return wait_semop();
  if (!poke && is_kind("sigtimedwait")) return wait_sigtimedwait();
  if (!poke && is_kind("nanosleep")) return wait_nanosleep(argument);
  fprintf(stderr, "usage: blocked KIND [ARGUMENT], or blocked poke futex FILE | semop ID\n");
  return 64;
}
