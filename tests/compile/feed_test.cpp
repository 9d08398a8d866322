// Ownership of inputs and results: temporaries are kept, named values are viewed.
#include <array>
#include <type_traits>
#include <utility>

#include "tests/compile/common.h"

namespace tensorgrad::compile_tests {

namespace {

struct One {
  Param w{{3}, init::literal({1, 2, 3})};
};

Tensor loss_of(const One& m, const Inputs& in) { return sum(m.w * in["x"]); }

// The contents of freed memory are unknown, so these allocate it again and overwrite it.
void overwrite_freed_memory(std::size_t count) {
  for (int i = 0; i < 64; ++i) Floats(count, -999.0f);
}

constexpr std::size_t kCount = 1000;

const float* data_of(const FeedValue& value) { return value.floats().data(); }

// References into a temporary do not compile.
template <class T>
constexpr bool kGivesFloats = requires(T t) {
  std::forward<T>(t).floats();
};
template <class T>
constexpr bool kGivesInts = requires(T t) {
  std::forward<T>(t).ints();
};
template <class T>
constexpr bool kGivesItems = requires(T t) {
  std::forward<T>(t).items();
};
template <class T>
constexpr bool kFinds = requires(T t) {
  std::forward<T>(t).find("w");
};
template <class T>
constexpr bool kGivesModel = requires(T t) {
  std::forward<T>(t).model();
};

static_assert(kGivesFloats<const FeedValue&> && !kGivesFloats<FeedValue&&> &&
              !kGivesFloats<const FeedValue&&>);
static_assert(kGivesInts<const FeedValue&> && !kGivesInts<FeedValue&&>);
static_assert(kGivesItems<const Feed&> && !kGivesItems<Feed&&>);
static_assert(kFinds<const NamedArrays&> && kFinds<NamedArrays&> && !kFinds<NamedArrays&&>);
static_assert(kGivesModel<const Training<One>&> && !kGivesModel<Training<One>&&>);
static_assert(kGivesModel<const Forward<One>&> && !kGivesModel<Forward<One>&&>);

// A temporary returns a value.
template <class T>
constexpr bool kIsValue = !std::is_reference_v<T>;
static_assert(kIsValue<decltype(std::declval<NamedArrays>().at("w"))>);
static_assert(kIsValue<decltype(std::declval<const NamedArrays>().at("w"))>);
static_assert(kIsValue<decltype(std::declval<NamedArrays>()["w"])>);
static_assert(std::is_same_v<decltype(std::declval<NamedArrays>().at("w").floats()), Floats>);
static_assert(std::is_same_v<decltype(std::declval<const Array>().floats()), Floats>);
static_assert(std::is_same_v<decltype(std::declval<const Array>().ints()), Ints>);
static_assert(kIsValue<decltype(std::declval<Array>().shape())>);
static_assert(kIsValue<decltype(std::declval<Outputs>().items())>);
static_assert(std::is_same_v<decltype(std::declval<Result>().output().floats()), Floats>);
static_assert(std::is_same_v<decltype(std::declval<Result>().captures().at("w").floats()), Floats>);

}  // namespace

TEST(FeedValue, OwnsWhatIsMovedIn) {
  Floats numbers_in(kCount, 7.0f);
  const float* const memory = numbers_in.data();
  const FeedValue moved(std::move(numbers_in));
  EXPECT_EQ(data_of(moved), memory);  // not copied
  numbers_in.assign(kCount, 1.0f);
  EXPECT_EQ(moved.floats()[0], 7.0f);

  const FeedValue temporary(Floats(kCount, 5.0f));
  const FeedValue of_ints(Ints(kCount, 4));
  const FeedValue of_array(Array({kCount}, Floats(kCount, 3.0f)));
  const FeedValue of_int_array(Array({2}, Ints{8, 9}));
  const FeedValue of_std_array(std::array<float, 2>{1, 2});
  const FeedValue of_const(static_cast<const Floats&&>(Floats(kCount, 6.0f)));
  overwrite_freed_memory(kCount);
  EXPECT_EQ(std::vector(temporary.floats().begin(), temporary.floats().end()),
            Floats(kCount, 5.0f));
  EXPECT_EQ(std::vector(of_ints.ints().begin(), of_ints.ints().end()), Ints(kCount, 4));
  EXPECT_EQ(std::vector(of_array.floats().begin(), of_array.floats().end()), Floats(kCount, 3.0f));
  EXPECT_EQ(*of_array.shape(), Shape({kCount}));
  EXPECT_EQ(std::vector(of_int_array.ints().begin(), of_int_array.ints().end()), (Ints{8, 9}));
  EXPECT_EQ(std::vector(of_std_array.floats().begin(), of_std_array.floats().end()),
            (Floats{1, 2}));
  EXPECT_EQ(std::vector(of_const.floats().begin(), of_const.floats().end()), Floats(kCount, 6.0f));
}

TEST(FeedValue, ViewsWhatHasAName) {
  Floats values{1, 2, 3};
  const Array array({3}, values);
  EXPECT_EQ(data_of(FeedValue(values)), values.data());
  EXPECT_EQ(data_of(FeedValue(std::span<const float>(values))), values.data());
  EXPECT_EQ(data_of(FeedValue(array)), array.floats().data());
}

TEST(FeedValue, CopiesOutliveTheFirst) {
  std::optional<FeedValue> first = FeedValue(Floats(kCount, 2.0f));
  const FeedValue copy = *first;
  first.reset();
  overwrite_freed_memory(kCount);
  EXPECT_EQ(std::vector(copy.floats().begin(), copy.floats().end()), Floats(kCount, 2.0f));
}

TEST(Feed, KeepsATemporaryUntilTheStep) {
  auto train =
      compile(One{}, {.inputs = {{"x", {3}}}, .optimizer = Sgd{.lr = 0}, .device = "cpu"}, loss_of);
  Feed feed{{"x", Floats{10, 20, 30}}};
  for (int i = 0; i < 64; ++i) Floats(3, -999.0f);
  EXPECT_EQ(train.step(feed).loss(), 140);
  Feed later;
  later.set("x", Array({3}, Floats{1, 1, 1}));
  for (int i = 0; i < 64; ++i) Floats(3, -999.0f);
  EXPECT_EQ(train.step(later).loss(), 6);
}

TEST(NamedArrays, ATemporaryHandsItsArraysOut) {
  auto train = compile(One{}, {.inputs = {{"x", {3}}}, .device = "cpu"}, loss_of);
  const auto w = train.download().at("w").floats();
  for (int i = 0; i < 64; ++i) Floats(3, -999.0f);
  EXPECT_EQ(w, (Floats{1, 2, 3}));
  EXPECT_EQ(train.download()["w"].floats(), (Floats{1, 2, 3}));
  const NamedArrays named = train.download();
  EXPECT_EQ(&named.at("w"), &named.find("w")->second);  // a name keeps what it has
  EXPECT_THROW(train.download().at("v"), std::out_of_range);
}

}  // namespace tensorgrad::compile_tests
