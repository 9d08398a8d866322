// Checks the tree: includes, public headers, folders named in HACKING.md, Markdown columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/layout/include_rules.h"

namespace tensorgrad::layout {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TENSORGRAD_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// The C++ files below `folder`, as sorted paths relative to the root.
std::vector<std::string> files_below(const char* folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    const auto extension = entry.path().extension();
    if (extension == ".h" || extension == ".cpp") {
      files.push_back(entry.path().lexically_relative(kRoot).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty()) << "no C++ files below " << folder;
  return files;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(Layout, SourceFoldersIncludeOnlyWhatComesBeforeThem) {
  for (const std::string& file : files_below("src")) {
    EXPECT_EQ(joined(check_source(file, read(kRoot / file))), "");
  }
}

TEST(Layout, PublicHeadersShowOnlyTheStandardLibraryAndThemselves) {
  for (const std::string& file : files_below("include")) {
    EXPECT_EQ(joined(check_public_header(file, read(kRoot / file))), "");
    for (const Include& include : includes_of(read(kRoot / file))) {
      if (include.path.rfind("tensorgrad/", 0) != 0) continue;
      EXPECT_TRUE(fs::exists(kRoot / "include" / include.path))
          << file << ":" << include.line << ": no public header " << include.path;
    }
  }
}

TEST(Layout, MarkdownIsWrapped) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kRoot))
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  EXPECT_GE(files.size(), 8u);
  for (const fs::path& file : files)
    EXPECT_EQ(joined(check_markdown(file.lexically_relative(kRoot).generic_string(), read(file))),
              "");
}

TEST(Layout, HackingNamesEveryFolder) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(kRoot / "src")) {
    if (entry.is_directory()) folders.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(joined(folders_not_named(read(kRoot / "HACKING.md"), folders)), "");
}

// Tests of the rules, on files that break them.

TEST(LayoutRules, OnlyTestsIncludeTheOracle) {
  EXPECT_EQ(
      joined(check_source("src/passes/fold.cpp", "#include \"reference/interpret.h\"\n")),
      "src/passes/fold.cpp:1: only tests may include the oracle (\"reference/interpret.h\")\n");
}

TEST(LayoutRules, ProseIsWrapped) {
  const std::string fits(100, 'x'), wide(101, 'x');
  EXPECT_EQ(joined(check_markdown("a.md", joined({fits, wide}))),
            "a.md:2: 101 columns; prose is wrapped at 100\n");
  EXPECT_TRUE(check_markdown("a.md", joined({"|" + wide, "```", wide, "```"})).empty());
}

TEST(LayoutRules, AnIncludeOfALaterFolderIsNamedWithItsLine) {
  EXPECT_EQ(joined(check_source("src/ir/graph.cpp",
                                "#include \"ir/graph.h\"\n#include \"support/text.h\"\n"
                                "#include \"ops/table.h\"\n")),
            "src/ir/graph.cpp:3: ir may not include ops, which comes after it (\"ops/table.h\")\n");
}

TEST(LayoutRules, EachFolderMayIncludeItselfAndNothingLater) {
  for (const std::string_view from : kFolders) {
    bool later = false;
    for (const std::string_view to : kFolders) {
      const std::string path = "src/" + std::string(from) + "/a.cpp";
      const std::string text = "#include \"" + std::string(to) + "/b.h\"\n";
      const bool oracle = to == "reference" && from != to;  // for tests alone
      EXPECT_EQ(check_source(path, text).size(), later || oracle ? 1u : 0u) << from << " -> " << to;
      later = later || from == to;
    }
  }
}

TEST(LayoutRules, OurHeadersAreWrittenWithTheirFolder) {
  EXPECT_EQ(joined(check_source("src/ir/graph.cpp", "#include \"graph.h\"\n")),
            "src/ir/graph.cpp:1: \"graph.h\" does not start with a folder of src/; write "
            "\"ir/...\" for our own headers and <...> for others\n");
  EXPECT_EQ(check_source("src/ir/graph.cpp", "#include \"../ops/table.h\"\n").size(), 1u);
}

TEST(LayoutRules, AnUnknownFolderIsNamed) {
  EXPECT_EQ(joined(check_source("src/utils/a.cpp", "")),
            "src/utils/a.cpp:1: folder src/utils has no place in the order; add it to kFolders\n");
}

TEST(LayoutRules, PublicHeadersRefuseThirdPartyAndStreams) {
  EXPECT_EQ(joined(check_public_header("include/tensorgrad/a.h",
                                       "#include <vector>\n#include <fmt/format.h>\n"
                                       "#include <iostream>\n#include \"ir/graph.h\"\n"
                                       "#include <webgpu.h>\n#include \"tensorgrad/b.h\"\n")),
            "include/tensorgrad/a.h:2: \"fmt/format.h\" is neither of the C++ library nor below "
            "tensorgrad/\n"
            "include/tensorgrad/a.h:3: public headers do not include <iostream>\n"
            "include/tensorgrad/a.h:4: \"ir/graph.h\" is neither of the C++ library nor below "
            "tensorgrad/\n"
            "include/tensorgrad/a.h:5: \"webgpu.h\" is neither of the C++ library nor below "
            "tensorgrad/\n");
}

TEST(LayoutRules, CommentsDoNotCount) {
  const std::string text =
      "// #include \"io/a.h\"\n/* #include \"io/b.h\"\n#include \"io/c.h\"\n*/\n"
      "  #  include \"io/d.h\"  // why\n";
  const auto found = includes_of(text);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, "io/d.h");
  EXPECT_EQ(found[0].line, 5);
}

TEST(LayoutRules, AFolderCountsAsNamedOnlyAsAFolder) {
  EXPECT_EQ(joined(folders_not_named("nir/ ir audio/ src/ops/ `nn/`", {"ir", "io", "ops", "nn"})),
            "ir\nio\n");
  EXPECT_EQ(joined(folders_not_named("nir/ and ir/", {"ir"})), "");
}

}  // namespace
}  // namespace tensorgrad::layout
