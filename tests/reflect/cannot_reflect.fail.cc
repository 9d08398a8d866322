// Mistakes that must not compile, one per macro; reflect_test.cpp reads what the compiler says.
#include <tensorgrad/reflect.h>

struct Param {};

class Opaque {
 public:
  explicit Opaque(int x) : x_(x) {}

 private:
  int x_;
};

class Listed {
 public:
  explicit Listed(int) {}

 private:
  Param W_;
  TENSORGRAD_FIELDS(W_)
};

struct InheritsLine : Listed {
  using Listed::Listed;
  Param more;
};

struct Derived : Param {
  Param more;
};

struct WithArray {
  Param params[2];
};

struct WithReference {
  Param& param;
};

template <class T>
struct Holder {
  Param W;
  T field;
};

template <class T>
void walk(T& model) {
  tensorgrad::walk_model<Param>(model, [](std::string, Param&) {});
}

#if defined(NO_MISTAKE)
template void walk(Holder<Listed>&);
#elif defined(CONSTRUCTOR)
template void walk(Opaque&);
#elif defined(CONSTRUCTOR_DEEP)
template void walk(Holder<std::vector<std::optional<Opaque>>>&);
#elif defined(POINTER)
template void walk(Holder<Param*>&);
#elif defined(INHERITED_LINE)
template void walk(Holder<InheritsLine>&);
#elif defined(BASE_CLASS)
template void walk(Holder<Derived>&);
#elif defined(BASE_CLASS_FIELDS)
void fields(Derived& derived) {
  tensorgrad::for_each_field(derived, [](std::string_view, auto&) {});
}
#elif defined(C_ARRAY)
template void walk(Holder<WithArray>&);
#elif defined(REFERENCE)
template void walk(Holder<WithReference>&);
#elif defined(PAIR)
template void walk(Holder<std::pair<int, Param>>&);
#endif
