#ifndef CLINUX_MORE_H
#define CLINUX_MORE_H

// accept4(2) with SOCK_CLOEXEC | SOCK_NONBLOCK; the sender's address isn't asked for.
int clinux_accept(int listener);
#endif
