// The threads of torture.c: each has a stack and thread-locals of its own, and one way of being
// blocked in a system call.
// The file that includes this has included torture_memory.h.
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

enum { MAX_THREADS = 256, FRAMES = 24, FRAME_BYTES = 8000, ANSWER_SECONDS = 30 };

struct frame { struct frame *up; unsigned char bytes[FRAME_BYTES]; };
static _Thread_local unsigned char thread_local_bytes[64 << 10];

enum request { NOTHING, WAKE, SUM, TOUCH };

struct victim {
  int index, kind;
  uint64_t seed;
  pthread_t thread;
  _Atomic pid_t tid;
  int fd, other;  // what it waits on, and where main pokes it
  int port;
  pthread_mutex_t lock;
  pthread_cond_t condition;
  _Atomic int request, requested, answered;
  uint64_t touch_seed, sum;
  _Atomic int eintr, errors;
  int last_result, last_errno;
};
static struct victim victims[MAX_THREADS];
static int victim_count;
static _Atomic int main_eintr;
static int semaphores = -1;
static _Thread_local volatile sig_atomic_t signals_seen;

static void on_signal(int number) { (void)number; signals_seen++; }

static void unexpected(struct victim *v, int result, int error) {
  if (result < 0 && error == EINTR) {
    v->eintr++;
    return;
  }
  v->last_result = result;
  v->last_errno = error;
  v->errors++;
}

static uint64_t sum_thread(const struct frame *top) {
  uint64_t h = hash(1, thread_local_bytes, sizeof thread_local_bytes);
  for (; top; top = top->up) h = hash(h, top->bytes, FRAME_BYTES);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  uint64_t bits = 0;
  for (int s = 1; s <= 31; s++) bits |= (uint64_t)sigismember(&mask, s) << s;
#ifdef __x86_64__
  bits |= (uint64_t)(__builtin_ia32_stmxcsr() & 0x6000) << 32;
#endif
  return hash(h, &bits, sizeof bits);
}

static void touch_thread(struct frame *top, uint64_t seed) {
  for (size_t at = 0; at < sizeof thread_local_bytes; at += 3 * 1024)
    fill_random(thread_local_bytes + at, 512, seed + at);
  for (int i = 0; top; top = top->up, i++)
    if (i % 3 == 0) fill_random(top->bytes, FRAME_BYTES / 2, seed + 5000 + i);
}

// The one blocking call of the kind. True: woken the way it should be.
static int block_epoll(struct victim *v, int timeout) {
  struct epoll_event event;
  int n = epoll_wait(v->other, &event, 1, timeout);
  if (n == 0 && timeout >= 0) return 0;
  if (n != 1) return unexpected(v, n, errno), 0;
  uint64_t count;
  return read(v->fd, &count, 8) == 8;
}
static int block_epoll_forever(struct victim *v) { return block_epoll(v, -1); }
static int block_epoll_timeout(struct victim *v) { return block_epoll(v, 200); }

static int block_futex(struct victim *v) {
  pthread_mutex_lock(&v->lock);
  while (v->requested == v->answered) {
    int error = pthread_cond_wait(&v->condition, &v->lock);
    if (error) unexpected(v, -1, error);
  }
  pthread_mutex_unlock(&v->lock);
  return 1;
}

static int block_accept(struct victim *v) {
  int fd = accept(v->fd, NULL, NULL);
  if (fd < 0) return unexpected(v, fd, errno), 0;
  close(fd);
  return 1;
}

static int block_nanosleep(struct victim *v) {
  struct timespec brief = {0, 20 * 1000 * 1000};
  int result = nanosleep(&brief, NULL);
  if (result) unexpected(v, result, errno);
  return v->requested != v->answered;
}

static int block_read(struct victim *v, size_t bytes) {
  uint64_t word;
  ssize_t n = read(v->fd, &word, bytes);
  if (n != (ssize_t)bytes) return unexpected(v, (int)n, errno), 0;
  return v->requested != v->answered;
}
static int block_pipe(struct victim *v) { return block_read(v, 1); }
static int block_eventfd(struct victim *v) { return block_read(v, 8); }
static int block_timerfd(struct victim *v) { return block_read(v, 8); }

static int block_poll(struct victim *v) {
  struct pollfd one = {.fd = v->fd, .events = POLLIN};
  int n = poll(&one, 1, -1);
  if (n != 1 || one.revents != POLLIN) return unexpected(v, n, errno), 0;
  return block_read(v, 1);
}

static int block_select(struct victim *v) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(v->fd, &set);
  int n = select(v->fd + 1, &set, NULL, NULL, NULL);
  if (n != 1 || !FD_ISSET(v->fd, &set)) return unexpected(v, n, errno), 0;
  return block_read(v, 1);
}

static int block_semop(struct victim *v) {
  struct sembuf take = {.sem_num = (unsigned short)v->index, .sem_op = -1};
  int result = semop(semaphores, &take, 1);
  if (result) unexpected(v, result, errno);
  return result == 0;
}

static int block_sigtimedwait(struct victim *v) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  struct timespec limit = {1, 0};
  int result = sigtimedwait(&set, NULL, &limit);
  if (result < 0 && errno == EAGAIN) return 0;
  if (result != SIGUSR1) unexpected(v, result, errno);
  return result == SIGUSR1;
}

static int block_receive(struct victim *v) {
  char byte;
  ssize_t n = recv(v->fd, &byte, 1, 0);
  if (n < 0 && errno == EAGAIN) return 0;
  if (n != 1) unexpected(v, (int)n, errno);
  return n == 1;
}

static int block_pause(struct victim *v) {
  int before = signals_seen, result = pause();
  if (signals_seen == before) return unexpected(v, result, errno), 0;
  return 1;
}

static void poke_eventfd(struct victim *v) {
  uint64_t one = 1;
  if (write(v->fd, &one, 8) != 8) unexpected(v, -1, errno);
}
static void poke_other(struct victim *v) {
  if (write(v->other, "!", 1) != 1) unexpected(v, -1, errno);
}
static void poke_condition(struct victim *v) {
  pthread_mutex_lock(&v->lock);
  pthread_cond_signal(&v->condition);
  pthread_mutex_unlock(&v->lock);
}
static void poke_connect(struct victim *v) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)v->port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&to, sizeof to)) unexpected(v, -1, errno);
  close(fd);
}
static void poke_nothing(struct victim *v) { (void)v; }  // it looks by itself
static void poke_semaphore(struct victim *v) {
  struct sembuf give = {.sem_num = (unsigned short)v->index, .sem_op = 1};
  if (semop(semaphores, &give, 1)) unexpected(v, -1, errno);
}
static void poke_usr1(struct victim *v) { pthread_kill(v->thread, SIGUSR1); }
static void poke_usr2(struct victim *v) { pthread_kill(v->thread, SIGUSR2); }

static const struct kind {
  const char *name;
  int (*block)(struct victim *);
  void (*poke)(struct victim *);
} kinds[] = {
  {"epoll", block_epoll_forever, poke_eventfd},
  {"futex", block_futex, poke_condition},
  {"accept", block_accept, poke_connect},
  {"nanosleep", block_nanosleep, poke_nothing},
  {"pipe", block_pipe, poke_other},
  {"poll", block_poll, poke_other},
  {"select", block_select, poke_other},
  {"semop", block_semop, poke_semaphore},
  {"sigtimedwait", block_sigtimedwait, poke_usr1},
  {"recvtimeo", block_receive, poke_other},
  {"epolltimeout", block_epoll_timeout, poke_eventfd},
  {"eventfd", block_eventfd, poke_eventfd},
  {"timerfd", block_timerfd, poke_nothing},
  {"pause", block_pause, poke_usr2},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void prepare_pair(struct victim *v, int is_socket) {
  int ends[2];
  must(is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
                 : pipe2(ends, O_CLOEXEC), "pipe");
  v->fd = ends[0];
  v->other = ends[1];
  struct timeval limit = {.tv_usec = 300 * 1000};
  if (is_socket && setsockopt(v->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit))
    die("SO_RCVTIMEO");
}

static void prepare_listener(struct victim *v) {
  v->fd = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  struct sockaddr_in here = {.sin_family = AF_INET};
  socklen_t length = sizeof here;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(bind(v->fd, (struct sockaddr *)&here, length), "bind");
  must(listen(v->fd, 8), "listen");
  must(getsockname(v->fd, (struct sockaddr *)&here, &length), "getsockname");
  v->port = ntohs(here.sin_port);
}

static void prepare(struct victim *v) {
  int (*block)(struct victim *) = kinds[v->kind].block;
  pthread_mutex_init(&v->lock, NULL);
  pthread_cond_init(&v->condition, NULL);
  if (block == block_epoll_forever || block == block_epoll_timeout) {
    v->fd = must(eventfd(0, EFD_CLOEXEC), "eventfd");
    v->other = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    struct epoll_event event = {.events = EPOLLIN};
    must(epoll_ctl(v->other, EPOLL_CTL_ADD, v->fd, &event), "epoll_ctl");
  } else if (block == block_eventfd) {
    v->fd = must(eventfd(0, EFD_CLOEXEC), "eventfd");
  } else if (block == block_timerfd) {
    struct itimerspec often = {{0, 100 * 1000 * 1000}, {0, 100 * 1000 * 1000}};
    v->fd = must(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), "timerfd_create");
    must(timerfd_settime(v->fd, 0, &often, NULL), "timerfd_settime");
  } else if (block == block_accept) {
    prepare_listener(v);
  } else if (block == block_pipe || block == block_poll || block == block_select) {
    prepare_pair(v, 0);
  } else if (block == block_receive) {
    prepare_pair(v, 1);
  }
}

static void serve(struct victim *v, struct frame *top) {
  for (;;) {
    if (!kinds[v->kind].block(v)) continue;
    if (v->requested == v->answered) {
      // Woken without a request. For pause(2), main may have sent its signal twice.
      if (kinds[v->kind].block != block_pause) unexpected(v, 0, 0);
      continue;
    }
    if (v->request == SUM) v->sum = sum_thread(top);
    if (v->request == TOUCH) touch_thread(top, v->touch_seed + (uint64_t)v->index);
    v->answered = v->requested;
  }
}
