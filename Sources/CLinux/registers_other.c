#if !defined(__x86_64__) && !defined(__aarch64__)
#include <errno.h>
#include <string.h>

#include "clinux_registers.h"

// Hibernation isn't implemented for this architecture yet: `doctor` reports that, and workers stay
// suspended.
int clinux_registers_supported(void) { return 0; }
uint32_t clinux_architecture(void) { return CLINUX_ARCHITECTURE_OTHER; }
int clinux_call_instruction_length(void) { return 1; }
int clinux_stop_hides_calls(void) { return 0; }
int clinux_registers_complete(pid_t thread, struct clinux_registers *r) {
  (void)thread, (void)r;
  return 0;
}
uint64_t clinux_registers_settable(const struct clinux_registers *r) { return r->length; }
int clinux_registers_are_like(const struct clinux_registers *one,
                              const struct clinux_registers *other) {
  return one->length == other->length && !memcmp(one->words, other->words, one->length);
}
int clinux_registers_leave_call(struct clinux_registers *r) { (void)r; return 0; }
int clinux_registers_interrupt_for_signal(struct clinux_registers *r, int always) {
  (void)r, (void)always;
  return 0;
}
int clinux_registers_in_syscall(const struct clinux_registers *r) { (void)r; return 0; }
int64_t clinux_registers_result(const struct clinux_registers *r) { (void)r; return 0; }
int clinux_registers_has_result(const struct clinux_registers *r) { (void)r; return 0; }
uint64_t clinux_registers_instruction(const struct clinux_registers *r) { (void)r; return 0; }
void clinux_registers_thread_block(const struct clinux_registers *r, uint64_t *start,
                                   uint64_t *length) {
  (void)r;
  *start = *length = 0;
}
int clinux_registers_newborn(const struct clinux_registers *r) { (void)r; return 0; }
int clinux_registers_restart_interrupted(struct clinux_registers *r) { (void)r; return 0; }
int clinux_registers_complete_call(struct clinux_registers *r, const struct clinux_call *before) {
  (void)r, (void)before;
  return 0;
}
int clinux_registers_call(const struct clinux_registers *r, struct clinux_call *call) {
  (void)r, (void)call;
  return 0;
}
void clinux_registers_change_call(struct clinux_registers *r, int64_t number, int argument,
                                  uint64_t value) {
  (void)r, (void)number, (void)argument, (void)value;
}
void clinux_registers_end_call(struct clinux_registers *r, int64_t result) {
  (void)r, (void)result;
}
void clinux_registers_prepare_call(struct clinux_registers *r, uint64_t instruction,
                                   int64_t number, const uint64_t arguments[6]) {
  (void)r, (void)instruction, (void)number, (void)arguments;
}
int64_t clinux_find_syscall_instruction(const void *code, int64_t length) {
  (void)code, (void)length;
  return -ENOSYS;
}
int clinux_write_syscall_trampoline(void *code, int capacity) {
  (void)code, (void)capacity;
  return -ENOSYS;
}
int clinux_trampoline_offsets(uint64_t *offsets, int capacity) {
  (void)offsets, (void)capacity;
  return -ENOSYS;
}
void clinux_registers_park(struct clinux_registers *r, uint64_t trampoline, int spins) {
  (void)r, (void)trampoline, (void)spins;
}
#endif
