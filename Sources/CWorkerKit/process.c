#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "CWorkerKit.h"

struct start {
  void (*body)(void *);
  void *argument;
};

static void *run(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
#ifdef __linux__
  pthread_setname_np(pthread_self(), "workerkit");
#endif
  start.body(start.argument);
  return NULL;
}

int workerkit_start_thread(void (*body)(void *), void *argument) {
  struct start *start = malloc(sizeof *start);
  if (!start) return -ENOMEM;
  *start = (struct start){body, argument};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int code = pthread_create(&thread, &attributes, run, start);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (code) free(start);
  return -code;
}

char *workerkit_environment(const char *name) {
  const char *value = getenv(name);
  return value ? strdup(value) : NULL;
}

void workerkit_at_exit(void (*body)(void)) { atexit(body); }

int64_t workerkit_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void workerkit_release(char *text) { free(text); }
