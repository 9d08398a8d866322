// Ctrl-C as a wish to stop at the next good moment.
#pragma once

namespace tensorgrad::tool {

// While one lives, the first ctrl-C (or the first request to end) is only noted, the second one ends the program, and
// writing where nobody reads any more is an error instead of the end.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool happened() const { return signal() != 0; }
  int signal() const;  // which; 0: none yet

 private:
  void (*before_int_)(int);
  void (*before_term_)(int);
  void (*before_pipe_)(int);
};

}  // namespace tensorgrad::tool
