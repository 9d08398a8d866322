#include "interrupt.h"

#include <csignal>

namespace tensorgrad::tool {

namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int signal) {
  interrupted = signal;
  std::signal(signal, signal == SIGHUP ? SIG_IGN : SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  before_int_ = std::signal(SIGINT, note_interrupt);
  before_term_ = std::signal(SIGTERM, note_interrupt);
  before_hup_ = std::signal(SIGHUP, note_interrupt);
  if (before_hup_ == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, before_int_);
  std::signal(SIGTERM, before_term_);
  std::signal(SIGHUP, before_hup_);
}

int Interrupt::signal() const { return interrupted; }

}  // namespace tensorgrad::tool
