// The file of measured tile choices.
#include "runtime/webgpu/choices.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

class WebgpuChoices : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("tg_choices_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    file_ = folder_ / "deep" / "choices.json";
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& text) {
    fs::create_directories(file_.parent_path());
    std::ofstream(file_) << text;
  }
  fs::path folder_, file_;
};

TEST_F(WebgpuChoices, AreRememberedBetweenPrograms) {
  webgpu::Choices first(file_);
  EXPECT_FALSE(first.find("card", "k1"));
  first.add("card", "k1", "128x64x16", "a product");
  first.save();
  webgpu::Choices second(file_);
  EXPECT_EQ(second.find("card", "k1"), "128x64x16");
  EXPECT_FALSE(second.find("another card", "k1"));
  // Two programs that save in turn lose nothing.
  webgpu::Choices third(file_);
  second.add("card", "k2", "64x64x32", "");
  third.add("another card", "k1", "64x128x16", "");
  second.save();
  third.save();
  const webgpu::Choices last(file_);
  EXPECT_EQ(last.find("card", "k1"), "128x64x16");
  EXPECT_EQ(last.find("card", "k2"), "64x64x32");
  EXPECT_EQ(last.find("another card", "k1"), "64x128x16");
  EXPECT_EQ(std::distance(fs::directory_iterator(file_.parent_path()), {}),
            1);  // no half-written files
}

TEST_F(WebgpuChoices, AFileThatIsNoneOfOursIsIgnoredAndReplaced) {
  for (
      const char* text :
      {"", "{", "[1, 2]", "null", R"({"format": "tensorgrad choices", "version": 1})",
       R"({"format": "tensorgrad choices", "version": 0, "adapters": {"card": {"k": {"tiles": "1x1x1", "kernel": ""}}}})",
       R"({"format": "tensorgrad choices", "version": 1, "adapters": {"card": {"k": {"tiles": 7, "kernel": ""}}}})",
       R"({"format": "tensorgrad choices", "version": 1, "adapters": {"card": [1]}})"}) {
    SCOPED_TRACE(text);
    write(text);
    webgpu::Choices choices(file_);
    EXPECT_FALSE(choices.find("card", "k"));
    choices.add("card", "k", "64x64x32", "");
    choices.save();
    EXPECT_EQ(webgpu::Choices(file_).find("card", "k"), "64x64x32");
  }
}

// A FIFO without a writer would block, a device would fill the memory.
TEST_F(WebgpuChoices, OnlyARegularFileIsRead) {
  fs::create_directories(file_.parent_path());
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  webgpu::Choices choices(file_);
  EXPECT_FALSE(choices.find("card", "k"));
  choices.add("card", "k", "64x64x32", "");
  choices.save();
  EXPECT_EQ(webgpu::Choices(file_).find("card", "k"), "64x64x32");
  fs::remove(file_);
  fs::create_symlink("/dev/zero", file_);
  EXPECT_FALSE(webgpu::Choices(file_).find("card", "k"));
}

TEST_F(WebgpuChoices, WithoutAPlaceToWriteNothingIsLost) {
  write("in the way");
  webgpu::Choices choices(file_ / "below a file" / "choices.json");
  choices.add("card", "k", "64x64x32", "");
  choices.save();
  EXPECT_EQ(choices.find("card", "k"), "64x64x32");
  webgpu::Choices nowhere;
  nowhere.add("card", "k", "64x64x32", "");
  nowhere.save();
  EXPECT_EQ(nowhere.find("card", "k"), "64x64x32");
}

}  // namespace
}  // namespace tensorgrad
