// Field names, TENSORGRAD_FIELDS, and the walk over a model. The layers are stand-ins: this header
// knows nothing about tensors.
#include <tensorgrad/reflect.h>

#include <gtest/gtest.h>

#include <any>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <map>

namespace tg = tensorgrad;

namespace reflect_test {

struct Param {
  int size = 0;
};

struct Linear {
  Linear(int in, int out, bool bias = true) : W{in * out} {
    if (bias) b = Param{out};
  }
  Param W;
  std::optional<Param> b;
  TENSORGRAD_FIELDS(W, b)
};

class Norm {
 public:
  explicit Norm(int size) : scale_{size}, size_(size) {}
  int size() const { return size_; }

 private:
  Param scale_;
  int size_;

  TENSORGRAD_FIELDS(scale_)
};

// ---- what a newcomer would try ----

struct Mlp {
  Linear l1{1, 64}, l2{64, 64}, l3{64, 1};
};

template <class T>
std::vector<std::string> names_of(T& object) {
  std::vector<std::string> names;
  tg::for_each_field(object, [&](std::string_view name, auto&) { names.emplace_back(name); });
  return names;
}

template <class Model>
std::vector<std::string> paths_of(Model& model) {
  std::vector<std::string> paths;
  tg::walk_model<Param>(model, [&](std::string path, const Param&) { paths.push_back(path); });
  return paths;
}

using Names = std::vector<std::string>;

TEST(ForEachField, NamesLayersOfAnMlp) {
  Mlp mlp;
  EXPECT_EQ(names_of(mlp), (Names{"l1", "l2", "l3"}));
}

TEST(ForEachField, GivesReferencesInOrder) {
  Mlp mlp;
  std::vector<const Linear*> seen;
  tg::for_each_field(mlp, [&](std::string_view, Linear& layer) {
    layer.W.size = 7;
    seen.push_back(&layer);
  });
  EXPECT_EQ(seen, (std::vector<const Linear*>{&mlp.l1, &mlp.l2, &mlp.l3}));
  EXPECT_EQ(mlp.l3.W.size, 7);
}

TEST(ForEachField, KeepsConst) {
  const Mlp mlp;
  tg::for_each_field(mlp, [](std::string_view, auto& layer) {
    static_assert(std::is_same_v<decltype(layer), const Linear&>);
  });
}

TEST(WalkModel, PathsOfAnMlp) {
  Mlp mlp;
  EXPECT_EQ(paths_of(mlp), (Names{"l1.W", "l1.b", "l2.W", "l2.b", "l3.W", "l3.b"}));
}

// ---- counting: one row per kind of field ----

enum class Mode { kTrain, kInfer };
struct Empty {};
struct Nested {
  int a;
  float b;
  Linear c;
};
struct ExplicitOnly {
  explicit ExplicitOnly(int) {}
};
struct MoveOnly {
  explicit MoveOnly(int) {}
  MoveOnly(MoveOnly&&) = default;
};
struct Immovable {
  explicit Immovable(int) {}
  Immovable(const Immovable&) = delete;
};
struct FromList {
  FromList(std::initializer_list<int>) {}
};
struct FromParamLike {
  template <class T, class = std::enable_if_t<std::is_constructible_v<Param, T>>>
  FromParamLike(T&&) {}
};
struct FromConvertible {
  template <class T>
  requires requires(T&& t) { static_cast<int>(static_cast<T&&>(t)); }
  FromConvertible(T&&) {}
};
struct FromEverything {
  template <class T>
  FromEverything(T&&) {}
  FromEverything(const FromEverything&) = default;
};

template <class T>
inline constexpr int fields_in = tg::is_reflectable<T> ? tg::detail::field_count<T> : -1;

template <class A>
struct One {
  A a;
};
template <class A, class B = A>
struct Two {
  A a;
  B b;
};
// A field of the type alone, twice, and before and after fields of other kinds.
template <class F>
struct Around {
  int before;
  F field;
  Nested after;
};
template <class F>
constexpr bool counts() {
  return fields_in<One<F>> == 1 && fields_in<Two<F>> == 2 && fields_in<Around<F>> == 3 &&
         fields_in<One<Two<F>>> == 1 && fields_in<Two<std::vector<F>, F>> == 2;
}

static_assert(fields_in<Empty> == 0);
static_assert(counts<int>() && counts<float>() && counts<bool>() && counts<char>());
static_assert(counts<Mode>() && counts<int*>() && counts<void (*)(int)>());
static_assert(counts<Empty>() && counts<Nested>() && counts<Two<Nested>>() && counts<Mlp>());
static_assert(counts<std::string>() && counts<std::string_view>());
static_assert(counts<std::vector<Linear>>() && counts<std::vector<bool>>());
static_assert(counts<std::array<float, 3>>() && counts<std::array<Linear, 2>>());
static_assert(counts<std::array<std::array<int, 2>, 2>>() && counts<std::array<int, 0>>());
static_assert(counts<std::optional<int>>() && counts<std::optional<bool>>());
static_assert(counts<std::optional<Param>>() && counts<std::optional<Linear>>());
static_assert(counts<std::optional<std::string>>() && counts<std::optional<Empty>>());
static_assert(counts<std::optional<std::optional<int>>>() && counts<std::optional<std::any>>());
static_assert(counts<std::optional<std::vector<Linear>>>() && counts<std::optional<MoveOnly>>());
static_assert(counts<std::variant<int>>() && counts<std::variant<bool, std::string>>());
static_assert(counts<std::variant<Linear, Norm>>());
static_assert(counts<std::variant<std::monostate, Param>>() && counts<std::any>());
static_assert(counts<std::function<void()>>() && counts<std::function<int(std::any)>>());
static_assert(counts<std::unique_ptr<Linear>>() && counts<std::shared_ptr<int>>());
static_assert(counts<std::pair<int, float>>() && counts<std::tuple<int>>());
static_assert(counts<std::tuple<std::any>>() && counts<std::reference_wrapper<int>>());
static_assert(counts<std::chrono::milliseconds>() && counts<std::map<int, Linear>>());
static_assert(counts<Linear>() && counts<Norm>() && counts<ExplicitOnly>() && counts<FromList>());
static_assert(counts<MoveOnly>() && counts<std::optional<ExplicitOnly>>());
static_assert(counts<FromParamLike>() && counts<FromConvertible>() && counts<FromEverything>());
static_assert(fields_in<Two<Immovable>> == 2 && fields_in<Two<std::atomic<int>>> == 2);
static_assert(fields_in<Two<const int, const Linear>> == 2);

TEST(ForEachField, CallsNothingForAnEmptyStruct) {
  Empty empty;
  EXPECT_EQ(names_of(empty), Names{});
}

TEST(ForEachField, WorksWithFieldsThatCannotBeCopied) {
  Two<MoveOnly, std::unique_ptr<int>> moved{MoveOnly(1), nullptr};
  EXPECT_EQ(names_of(moved), (Names{"a", "b"}));
  Two<Immovable> fixed{Immovable(1), Immovable(2)};
  EXPECT_EQ(names_of(fixed), (Names{"a", "b"}));
}

// Twelve kinds of field in one struct, some with a default and some without.
struct Assorted {
  int number;
  Nested nested;
  std::vector<Nested> vector_;
  std::array<float, 3> array;
  std::optional<Param> _optional;
  std::variant<int, Linear> variant{3};
  std::string string = "x";
  Mode mode = Mode::kInfer;
  Linear linear{1, 2, false};
  std::function<float(float)> activation;
  const bool fixed = true;
  Empty empty;
};

TEST(ForEachField, NamesAssortedFields) {
  const Assorted object{1, {1, 2, {3, 4}}, {}, {}, {}, 3, "x", Mode::kTrain, {1, 2}, {}, true, {}};
  EXPECT_EQ(names_of(object), (Names{"number", "nested", "vector_", "array", "_optional", "variant",
                                     "string", "mode", "linear", "activation", "fixed", "empty"}));
}

struct Full {
  int a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20,
      a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31;
};

TEST(ForEachField, TakesThirtyTwoFields) {
  Full full{};
  full.a31 = 31;
  const Names names = names_of(full);
  ASSERT_EQ(names.size(), 32u);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(names[i], "a" + std::to_string(i));
  int last = 0;
  tg::for_each_field(full, [&](std::string_view, int& field) { last = field; });
  EXPECT_EQ(last, 31);
}

template <std::size_t N>
struct OfSize {};
#define SIZED(n, ...) \
  template <>         \
  struct OfSize<n> {  \
    int __VA_ARGS__;  \
  };
SIZED(1, a)
SIZED(2, a, b)
SIZED(3, a, b, c)
SIZED(4, a, b, c, d)
SIZED(5, a, b, c, d, e)
SIZED(6, a, b, c, d, e, f)
SIZED(7, a, b, c, d, e, f, g)
SIZED(8, a, b, c, d, e, f, g, h)
SIZED(9, a, b, c, d, e, f, g, h, i)
SIZED(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
SIZED(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
SIZED(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
SIZED(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
SIZED(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)

template <std::size_t... N>
void expect_alphabet(std::index_sequence<N...>) {
  const auto check = [](auto object, std::size_t size) {
    const Names names = names_of(object);
    ASSERT_EQ(names.size(), size);
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_EQ(names[i], std::string(1, static_cast<char>('a' + i)));
    }
  };
  (check(OfSize<N>{}, N), ...);
}

TEST(ForEachField, BindsEveryTableRowInOrder) {
  expect_alphabet(std::index_sequence<1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 24, 25>{});
}

// ---- names do not depend on where the struct lives ----

namespace outer::inner {
struct Named {
  int x_1;
  std::string W;
};
}  // namespace outer::inner
namespace {
struct Unnamed {
  int x_1;
  std::string W;
};
namespace deeper {
template <class T, class U>
struct Template {
  T x_1;
  std::map<std::string, U> W;
};
}  // namespace deeper
}  // namespace
struct Outer {
  struct Inner {
    int x_1;
    Outer* W;
  };
};

TEST(ForEachField, NamesAreRightEverywhere) {
  const Names expected{"x_1", "W"};
  outer::inner::Named named{};
  EXPECT_EQ(names_of(named), expected);
  Unnamed unnamed{};
  EXPECT_EQ(names_of(unnamed), expected);
  deeper::Template<std::vector<Unnamed>, outer::inner::Named> of_template{};
  EXPECT_EQ(names_of(of_template), expected);
  Outer::Inner nested{};
  EXPECT_EQ(names_of(nested), expected);

  struct Local {
    int x_1;
    std::optional<Unnamed> W;
  };
  Local local{};
  EXPECT_EQ(names_of(local), expected);
  const auto in_lambda = [](auto value) {
    struct LocalOfLambda {
      decltype(value) x_1;
      Local W;
    };
    LocalOfLambda object{};
    return names_of(object);
  };
  EXPECT_EQ(in_lambda(std::string()), expected);
}

TEST(ForEachField, NamesAreKnownAtCompileTime) {
  static_assert(tg::detail::field_names<Mlp>[2] == "l3");
  constexpr int kSum = [] {
    Two<int> pair{3, 4};
    int sum = 0;
    tg::for_each_field(pair, [&](std::string_view, int& field) { sum += field; });
    return sum;
  }();
  static_assert(kSum == 7);
}

// ---- TENSORGRAD_FIELDS ----

TEST(Fields, NamesWhatItLists) {
  Linear linear{2, 3};
  EXPECT_EQ(names_of(linear), (Names{"W", "b"}));
  Norm norm{5};
  EXPECT_EQ(names_of(norm), Names{"scale_"});
  EXPECT_EQ(norm.size(), 5);
}

TEST(Fields, GivesReferencesToPrivateMembers) {
  Norm norm{5};
  tg::for_each_field(norm, [](std::string_view, Param& scale) { scale.size = 9; });
  const Norm& view = norm;
  tg::for_each_field(view, [](std::string_view, auto& scale) {
    static_assert(std::is_same_v<decltype(scale), const Param&>);
    EXPECT_EQ(scale.size, 9);
  });
}

class Nothing {
  TENSORGRAD_FIELDS()
 public:
  explicit Nothing(int) {}
};

template <class T>
class Box {
 public:
  explicit Box(T value) : value_(value) {}

 private:
  T value_;
  TENSORGRAD_FIELDS(value_);
};

struct PartOfAggregate {
  int skipped;
  int listed;
  TENSORGRAD_FIELDS(listed)
};

TEST(Fields, MayBeEmptyATemplateOrPartOfAnAggregate) {
  Nothing nothing{1};
  EXPECT_EQ(names_of(nothing), Names{});
  Box<int> box{1};
  EXPECT_EQ(names_of(box), Names{"value_"});
  PartOfAggregate part{1, 2};
  EXPECT_EQ(names_of(part), Names{"listed"});
}

TEST(Fields, WorksInALocalClass) {
  class Local {
   public:
    explicit Local(int size) : w_{size} {}

   private:
    Param w_;
    TENSORGRAD_FIELDS(w_)
  };
  Local local{1};
  EXPECT_EQ(names_of(local), Names{"w_"});
}

struct Scaled : Norm {  // inherits the line of Norm, which does not know `gain`
  explicit Scaled(int size) : Norm(size) {}
  Param gain;
};
struct Biased : Linear {
  using Linear::Linear;
  Param extra;
  TENSORGRAD_FIELDS(W, b, extra)
};
template <class T>
struct BoxedMore : Box<T> {
  explicit BoxedMore(T value) : Box<T>(value) {}
  T more{};
  TENSORGRAD_FIELDS(this->more)
};

TEST(Fields, IsNotInherited) {
  static_assert(!tg::is_reflectable<Scaled>);
  Biased biased{2, 3};
  EXPECT_EQ(names_of(biased), (Names{"W", "b", "extra"}));
  BoxedMore<int> boxed{1};
  EXPECT_EQ(names_of(boxed), Names{"more"});
}

class Many {
  int a0 = 0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
      a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31;
  TENSORGRAD_FIELDS(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17,
                    a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31)
};

TEST(Fields, TakesThirtyTwoFields) {
  Many many;
  const Names names = names_of(many);
  ASSERT_EQ(names.size(), 32u);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(names[i], "a" + std::to_string(i));
}

// ---- is_reflectable ----

union Either {
  int a;
  float b;
};
class Opaque {
 public:
  explicit Opaque(int x) : x_(x) {}
  int x() const { return x_; }

 private:
  int x_;
};
struct DerivedAggregate : Param {
  int more;
};
struct DerivedEmpty : Empty {};
struct WithCArray {
  int before;
  float values[3];
  int after;
};
struct WithReference {
  int& reference;
};
struct TakesConstRef {
  template <class T>
  TakesConstRef(const T&) {}
  TakesConstRef() = default;
};
struct WithTakesConstRef {
  int before;
  TakesConstRef field;
  int after;
};
struct TooLong {
  Full most;
  int a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20,
      a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31;
};

TEST(IsReflectable, SaysWhichTypesHaveFields) {
  static_assert(tg::is_reflectable<Mlp> && tg::is_reflectable<Empty> && tg::is_reflectable<Full>);
  static_assert(tg::is_reflectable<Linear> && tg::is_reflectable<Norm>);
  static_assert(!tg::is_reflectable<int> && !tg::is_reflectable<int*> && !tg::is_reflectable<Mode>);
  static_assert(!tg::is_reflectable<int[3]> && !tg::is_reflectable<Either>);
  static_assert(!tg::is_reflectable<std::array<int, 3>> && !tg::is_reflectable<std::string>);
  static_assert(!tg::is_reflectable<std::vector<int>> && !tg::is_reflectable<std::optional<int>>);
  static_assert(!tg::is_reflectable<std::pair<int, int>> && !tg::is_reflectable<Opaque>);
}

TEST(IsReflectable, IsFalseWhereStructuredBindingsFail) {
  using tg::detail::Obstacle;
  static_assert(tg::detail::obstacle<DerivedAggregate> == Obstacle::kBaseClass);
  static_assert(tg::detail::obstacle<DerivedEmpty> == Obstacle::kBaseClass);
  static_assert(tg::detail::obstacle<WithCArray> == Obstacle::kArrayField);
  static_assert(tg::detail::obstacle<WithReference> == Obstacle::kUncountable);
  static_assert(tg::detail::obstacle<WithTakesConstRef> == Obstacle::kUncountable);
  static_assert(tg::detail::obstacle<TooLong> == Obstacle::kUncountable);
}

// ---- walk_model ----

struct Attention {
  Linear q{8, 8, false}, k{8, 8, false}, v{8, 8, false};
};
struct Block {
  Norm norm{8};
  Attention attn;
  std::array<Linear, 2> mlp{Linear{8, 32}, Linear{32, 8, false}};
};
struct Gpt {
  int heads = 2;
  Param wte{80};
  std::vector<Block> layers{2};
  std::optional<Linear> head;
  std::string name = "tiny";
};

TEST(WalkModel, PathsOfATransformer) {
  Gpt gpt;
  gpt.layers.resize(1);
  gpt.head.emplace(8, 10, false);
  EXPECT_EQ(paths_of(gpt), (Names{"wte", "layers.0.norm.scale_", "layers.0.attn.q.W",
                                  "layers.0.attn.k.W", "layers.0.attn.v.W", "layers.0.mlp.0.W",
                                  "layers.0.mlp.0.b", "layers.0.mlp.1.W", "head.W"}));
  gpt.head.reset();
  gpt.layers.clear();
  EXPECT_EQ(paths_of(gpt), Names{"wte"});
}

TEST(WalkModel, GivesTheLeavesThemselves) {
  Gpt gpt;
  tg::walk_model<Param>(gpt, [](const std::string& path, Param& param) {
    if (path == "layers.1.attn.k.W") param.size = -1;
  });
  EXPECT_EQ(gpt.layers[1].attn.k.W.size, -1);

  const Gpt& view = gpt;
  int found = 0;
  tg::walk_model<Param>(view, [&](std::string_view, auto& param) {
    static_assert(std::is_same_v<decltype(param), const Param&>);
    found += param.size == -1;
  });
  EXPECT_EQ(found, 1);
}

TEST(WalkModel, CallsTheFunctionItIsGiven) {
  struct Counter {
    int calls = 0;
    void operator()(const std::string&, const Param&) { ++calls; }
  } counter;
  const Mlp mlp;
  tg::walk_model<Param>(mlp, counter);
  EXPECT_EQ(counter.calls, 6);
}

TEST(WalkModel, LeafAtTheRootHasAnEmptyPath) {
  Param param;
  EXPECT_EQ(paths_of(param), Names{""});
  std::vector<Param> params(2);
  EXPECT_EQ(paths_of(params), (Names{"0", "1"}));
  std::optional<Param> maybe{Param{}};
  EXPECT_EQ(paths_of(maybe), Names{""});
}

struct Choices {
  std::variant<std::monostate, Param, Linear> mixer;
  std::unique_ptr<Linear> owned;
  std::vector<std::unique_ptr<Linear>> list;
  std::vector<std::vector<Param>> table;
  std::vector<std::variant<Linear, Norm>> stack;
  std::vector<std::optional<Param>> sparse;
};

TEST(WalkModel, OptionalVariantAndUniquePtrAddNothingToThePath) {
  Choices model;
  EXPECT_EQ(paths_of(model), Names{});

  model.mixer = Linear{1, 1, false};
  model.owned = std::make_unique<Linear>(1, 1);
  model.list.push_back(nullptr);
  model.list.push_back(std::make_unique<Linear>(1, 1, false));
  model.table = {{Param{}}, {Param{}, Param{}}};
  model.stack.emplace_back(Norm{1});
  model.stack.emplace_back(Linear{1, 1, false});
  model.sparse = {std::nullopt, Param{}};
  const Names expected{"mixer.W",   "owned.W",   "owned.b",        "list.1.W",  "table.0.0",
                       "table.1.0", "table.1.1", "stack.0.scale_", "stack.1.W", "sparse.1"};
  EXPECT_EQ(paths_of(model), expected);
  const Choices& view = model;
  EXPECT_EQ(paths_of(view), expected);

  model.mixer = Param{};
  EXPECT_EQ(paths_of(model).front(), "mixer");
}

TEST(WalkModel, ConstReachesThroughUniquePtr) {
  const std::unique_ptr<Linear> model = std::make_unique<Linear>(1, 1);
  tg::walk_model<Param>(model, [](std::string_view, auto& param) {
    static_assert(std::is_same_v<decltype(param), const Param&>);
  });
}

struct Tree {
  Param value;
  std::vector<Tree> children;
};

TEST(WalkModel, TakesRecursiveModels) {
  Tree tree{{}, {Tree{{}, {Tree{}}}, Tree{}}};
  EXPECT_EQ(paths_of(tree), (Names{"value", "children.0.value", "children.0.children.0.value",
                                   "children.1.value"}));
}

class Tokenizer {
 public:
  explicit Tokenizer(int vocabulary) : vocabulary_(vocabulary) {}
  int vocabulary() const { return vocabulary_; }

 private:
  int vocabulary_;
};
}  // namespace reflect_test
template <>
struct tensorgrad::ignore_in_models<reflect_test::Tokenizer> : std::true_type {};
namespace reflect_test {

struct Settings {
  bool causal = true;
  int heads = 4;
  double rate = 0.1;
  Mode mode = Mode::kTrain;
  std::string name;
  std::string_view view;
  std::function<float(float)> activation;
  std::chrono::milliseconds timeout{5};
  std::pair<int, int> kernel{3, 3};
  std::tuple<int, std::string> label;
  std::vector<bool> mask{true, false};
  std::vector<std::vector<int>> shapes{{1}, {2, 3}};
  std::array<float, 2> betas{};
  std::optional<int> window = 3;
  std::variant<int, std::string> seed;
  Tokenizer tokenizer{80};
  std::vector<Tokenizer> more;
  Two<int, std::string> nested;
};
struct Configured {
  Settings settings;
  Param W;
};

TEST(WalkModel, PassesOverSettings) {
  Configured model;
  EXPECT_EQ(paths_of(model), Names{"W"});
}

TEST(WalkModel, FindsLeavesThatWouldBeSettings) {
  struct Model {
    int a = 1;
    std::vector<int> b{2, 3};
    std::string c;
  } model;
  Names paths;
  tg::walk_model<int>(model, [&](std::string path, int&) { paths.push_back(path); });
  EXPECT_EQ(paths, (Names{"a", "b.0", "b.1"}));
}

// ---- what the compiler says when a type cannot be reflected ----

#if !defined(__EMSCRIPTEN__)

#ifndef TENSORGRAD_CXX
#define TENSORGRAD_CXX "c++"
#endif
#ifndef TENSORGRAD_SOURCE_DIR
#define TENSORGRAD_SOURCE_DIR "."
#endif

struct Compilation {
  bool ok;
  std::string output;
};

Compilation compile_fail_case(const std::string& name) {
  const std::string root = TENSORGRAD_SOURCE_DIR;
  const std::string command = "\"" TENSORGRAD_CXX "\" -std=c++20 -fsyntax-only -x c++ -I\"" + root +
                              "/include\" -D" + name + " \"" + root +
                              "/tests/reflect/cannot_reflect.fail.cc\" 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {false, "popen failed"};
  std::string output;
  std::array<char, 4096> chunk;
  while (const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
    output.append(chunk.data(), n);
  }
  return {pclose(pipe) == 0, output};
}

TEST(CannotReflect, TheFileCompilesWithoutTheMistake) {
  const Compilation result = compile_fail_case("NO_MISTAKE");
  EXPECT_TRUE(result.ok) << result.output;
}

struct FailCase {
  const char* macro;
  const char* type;
  const char* reason;
  const char* remedy;
};

class CannotReflect : public testing::TestWithParam<FailCase> {};

TEST_P(CannotReflect, SaysWhichTypeAndWhatToDo) {
  const auto [macro, type, reason, remedy] = GetParam();
  const Compilation result = compile_fail_case(macro);
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.output.find(std::string("cannot be reflected: ") + reason), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find(remedy), std::string::npos) << result.output;
  std::string dense = result.output;  // g++ writes `Param*` and `Param> >`, clang++ `Param *`
  std::erase(dense, ' ');
  EXPECT_NE(dense.find(std::string("cannot_reflect<") + type + ">"), std::string::npos)
      << result.output;
  // The message is the only error: nothing else fails behind it.
  std::size_t errors = 0;
  for (std::size_t at = 0; (at = result.output.find("error: ", at)) != std::string::npos; ++at) {
    ++errors;
  }
  EXPECT_EQ(errors, 1u) << result.output;
}

constexpr const char* kAddLine = "add the line TENSORGRAD_FIELDS(member, ...) to the class";
INSTANTIATE_TEST_SUITE_P(
    Messages, CannotReflect,
    testing::Values(
        FailCase{"CONSTRUCTOR", "Opaque", "it is no aggregate", kAddLine},
        FailCase{"CONSTRUCTOR_DEEP", "Opaque", "it is no aggregate", "Make it an aggregate"},
        FailCase{"POINTER", "Param*", "it is no aggregate", "ignore_in_models"},
        FailCase{"INHERITED_LINE", "InheritsLine", "it is no aggregate", kAddLine},
        FailCase{"BASE_CLASS", "Derived", "it has a base class", "Make the base a member"},
        FailCase{"BASE_CLASS_FIELDS", "Derived", "it has a base class", "Make the base a member"},
        FailCase{"C_ARRAY", "WithArray", "a field is a C array", "Use std::array"},
        FailCase{"REFERENCE", "WithReference", "its fields cannot be counted",
                 "TENSORGRAD_FIELDS(member, ...)"},
        FailCase{"PAIR", "std::pair<int,Param>", "it is no aggregate", "Make it an aggregate"}),
    [](const auto& instance) { return std::string(instance.param.macro); });

#endif  // !defined(__EMSCRIPTEN__)

}  // namespace reflect_test
