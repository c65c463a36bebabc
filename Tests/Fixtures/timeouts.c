// Waits in one call of each kind that has a time-out, a thread each, and says how each ended.
//
//   timeouts MILLISECONDS KIND...
//
// Prints `ready` when all threads are about to wait, then for each `KIND ok MILLISECONDS` with the
// time that the call took, or `KIND wrong RESULT ERRNO MILLISECONDS`. `ok`: result, errno and the
// time in memory are what the call leaves when nothing disturbs it.
//
//   timeouts signal MILLISECONDS KIND [restart]
//
// Waits in its first thread, with a handler for SIGUSR1; `restart`: with SA_RESTART. Prints `ready
// PORT` and, when the call (`accept`: at PORT) has ended, `KIND RESULT ERRNO HANDLED MILLISECONDS`.
// Here `stdin` reads a byte without time-out.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long milliseconds;
static struct timespec span;
static const struct timespec *constant;  // the same in memory that can't be written to
static atomic_int waiting;
static int pair[2], listener, queue_of_epoll, semaphores;

static struct timespec later(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_sec += span.tv_sec;
  t.tv_nsec += span.tv_nsec;
  if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
  return t;
}

// The result of each call, and errno if the result is -1.
static const char *wrong_memory;
static int is_whole(struct timespec t) {
  return t.tv_sec == span.tv_sec && t.tv_nsec == span.tv_nsec;
}

static long wait_in(const char *kind, long *expected, int *error) {
  struct epoll_event event;
  struct pollfd entry = {.fd = pair[0], .events = POLLIN};
  struct timespec t = span;
  uint32_t word = 0;
  char byte;
  *expected = 0, *error = 0;
  if (!strcmp(kind, "stdin")) return read(0, &byte, 1);
#define IS(name) (!strcmp(kind, name))
  if (IS("epoll_wait")) return epoll_wait(queue_of_epoll, &event, 1, milliseconds);
  if (IS("epoll_pwait")) {
    sigset_t none;
    sigemptyset(&none);
    return epoll_pwait(queue_of_epoll, &event, 1, milliseconds, &none);
  }
  if (IS("epoll_pwait2")) {
    long r = syscall(SYS_epoll_pwait2, queue_of_epoll, &event, 1, &t, NULL, 8);
    if (!is_whole(t)) wrong_memory = kind;
    return r;
  }
  if (IS("poll")) return poll(&entry, 1, milliseconds);
  if (IS("ppoll")) {
    long r = syscall(SYS_ppoll, &entry, 1, &t, NULL, 8);
    if (t.tv_sec || t.tv_nsec) wrong_memory = kind;
    return r;
  }
  if (IS("ppoll-constant")) return syscall(SYS_ppoll, &entry, 1, constant, NULL, 8);
  if (IS("select")) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pair[0], &set);
    struct timeval v = {span.tv_sec, span.tv_nsec / 1000};
    long r = select(pair[0] + 1, &set, NULL, NULL, &v);
    if (v.tv_sec || v.tv_usec) wrong_memory = kind;
    return r;
  }
  if (IS("pselect6")) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pair[0], &set);
    long r = syscall(SYS_pselect6, pair[0] + 1, &set, NULL, NULL, &t, NULL);
    if (t.tv_sec || t.tv_nsec) wrong_memory = kind;
    return r;
  }
  if (IS("nanosleep")) return nanosleep(&t, NULL);
  if (IS("clock_nanosleep")) return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
  if (IS("clock_nanosleep-until")) {
    t = later(CLOCK_MONOTONIC);
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
  }
  *expected = -1, *error = ETIMEDOUT;
  if (IS("futex")) return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
  if (IS("futex-until")) {
    t = later(CLOCK_MONOTONIC);
    return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL, ~0);
  }
  if (IS("futex_waitv")) {
    struct { uint64_t value, address; uint32_t flags, reserved; } one = {0, (uintptr_t)&word, 2, 0};
    t = later(CLOCK_MONOTONIC);
    long r = syscall(449, &one, 1, 0, &t, CLOCK_MONOTONIC);
    if (r < 0 && errno == ENOSYS) *error = ENOSYS;
    return r;
  }
  if (IS("sem_timedwait")) {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    t = later(CLOCK_REALTIME);
    return sem_timedwait(&semaphore, &t);
  }
  if (IS("mq_timedreceive")) {
    char name[64], message[64];
    snprintf(name, sizeof name, "/dormouse-timeouts-%d", getpid());
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof message};
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    mq_unlink(name);
    t = later(CLOCK_REALTIME);
    if (queue == (mqd_t)-1) {
      clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
      errno = ETIMEDOUT;
      return -1;
    }
    return mq_timedreceive(queue, message, sizeof message, NULL, &t);
  }
  *error = EAGAIN;
  if (IS("semtimedop")) {
    struct sembuf operation = {0, -1, 0};
    long r = semtimedop(semaphores, &operation, 1, &t);
    if (!is_whole(t)) wrong_memory = kind;
    return r;
  }
  if (IS("sigtimedwait")) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    long r = sigtimedwait(&set, NULL, &t);
    if (!is_whole(t)) wrong_memory = kind;
    return r;
  }
  struct timeval v = {span.tv_sec, span.tv_nsec / 1000};
  if (IS("recv") || IS("read") || IS("recvmsg")) {
    int own[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, own);
    setsockopt(own[0], SOL_SOCKET, SO_RCVTIMEO, &v, sizeof v);
    if (IS("recv")) return recv(own[0], &byte, 1, 0);
    if (IS("read")) return read(own[0], &byte, 1);
    struct iovec part = {&byte, 1};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    return recvmsg(own[0], &header, 0);
  }
  if (IS("accept")) {
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &v, sizeof v);
    return accept(listener, NULL, NULL);
  }
  if (IS("io_getevents")) {
    *expected = 0, *error = 0;
    aio_context_t context = 0;
    struct io_event one;
    if (syscall(SYS_io_setup, 1, &context) < 0) return -2;
    long r = syscall(SYS_io_getevents, context, 1, 1, &one, &t);
    if (!is_whole(t)) wrong_memory = kind;
    return r;
  }
  return -3;
}

static void *run(void *argument) {
  const char *kind = argument;
  struct timespec from, to;
  long expected;
  int error;
  clock_gettime(CLOCK_MONOTONIC, &from);
  waiting++;
  errno = 0;
  long result = wait_in(kind, &expected, &error);
  int code = errno;
  clock_gettime(CLOCK_MONOTONIC, &to);
  long took = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
  int is_right = result == expected && (result != -1 || code == error) && wrong_memory != kind;
  if (is_right) printf("%s ok %ld\n", kind, took);
  else printf("%s wrong %ld %d %ld\n", kind, result, code, took);
  return NULL;
}

static volatile sig_atomic_t handled;
static void handle(int signal) { (void)signal, handled++; }

static int wait_for_signal(const char *kind, int flags) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
  sigaction(SIGUSR1, &action, NULL);
  struct timespec from, to;
  long expected;
  int error;
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  getsockname(listener, (struct sockaddr *)&address, &length);
  printf("ready %d\n", ntohs(address.sin_port));
  clock_gettime(CLOCK_MONOTONIC, &from);
  errno = 0;
  long result = wait_in(kind, &expected, &error);
  int code = errno;
  clock_gettime(CLOCK_MONOTONIC, &to);
  long took = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
  printf("%s %ld %d %d %ld\n", kind, result, result < 0 ? code : 0, (int)handled, took);
  semctl(semaphores, 0, IPC_RMID);
  return 0;
}

int main(int count, char **arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  int for_signal = !strcmp(arguments[1], "signal");
  if (for_signal) arguments++, count--;
  milliseconds = atol(arguments[1]);
  span = (struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, NULL);

  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  queue_of_epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(queue_of_epoll, EPOLL_CTL_ADD, pair[0], &event);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  bind(listener, (struct sockaddr *)&address, sizeof address);
  listen(listener, 1);
  semaphores = semget(IPC_PRIVATE, 1, 0600);

  // A file's page, mapped without the right to write.
  char path[] = "/tmp/dormouse-timeouts-XXXXXX";
  int file = mkstemp(path);
  unlink(path);
  if (write(file, &span, sizeof span) != sizeof span) return 1;
  constant = mmap(NULL, sizeof span, PROT_READ, MAP_PRIVATE, file, 0);

  if (for_signal) return wait_for_signal(arguments[2], count > 3 ? SA_RESTART : 0);
  pthread_t threads[64];
  for (int i = 2; i < count; i++) pthread_create(&threads[i], NULL, run, arguments[i]);
  while (waiting < count - 2) usleep(1000);
  printf("ready\n");
  for (int i = 2; i < count; i++) pthread_join(threads[i], NULL);
  semctl(semaphores, 0, IPC_RMID);
  printf("done\n");
  return 0;
}
