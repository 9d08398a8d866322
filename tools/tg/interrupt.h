// Ctrl-C as a request to stop at the next safe point.
#pragma once

namespace tensorgrad::tool {

// While one exists, the first ctrl-C (or SIGTERM, or SIGHUP of a closing terminal) is only
// recorded. A second ctrl-C or SIGTERM ends the program. A second SIGHUP does not, because a
// closing terminal often sends two. SIGHUP stays ignored if nohup set it so.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool happened() const { return signal() != 0; }
  int signal() const;  // its number; 0: none yet

 private:
  void (*before_int_)(int);
  void (*before_term_)(int);
  void (*before_hup_)(int);
};

}  // namespace tensorgrad::tool
