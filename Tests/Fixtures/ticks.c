// Prints `ready`, and then `tick` each half second, by epoll_wait's time-out.
#include <stdio.h>
#include <sys/epoll.h>

int main(void) {
  struct epoll_event event;
  int queue = epoll_create1(0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (epoll_wait(queue, &event, 1, 500) == 0) printf("tick\n");
  perror("epoll_wait");
  return 1;
}
