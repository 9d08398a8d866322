// How dawn.node is loaded without Node:
//  - It refers to functions of Node, which do not exist here and which Dawn itself never calls. In
//    a copy in memory, these symbols become weak, so that the loader leaves them null.
//  - Its log prints some warnings to stderr, whatever callback it is given. In the copy, calls of
//    fprintf and printf become calls of a function without effect.
//  - `dawn::native::GetProcs` returns the table of Dawn's functions, `dawnProcSetProcs` installs
//    it, and `wgpuGetProcAddress` then finds each function by name. The symbol table of the file
//    has the addresses of these three.
#include "runtime/webgpu/dawn_node_native.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/webgpu/api.h"
#include "support/fail.h"

namespace tensorgrad::webgpu {

namespace {

constexpr const char* kGetProcs = "_ZN4dawn6native8GetProcsEv";
constexpr const char* kSetProcs = "dawnProcSetProcs";
constexpr const char* kGetProcAddress = "wgpuGetProcAddress";

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw DeviceError(fmt::format(
      "webgpu: cannot load the library: {}: {}\n  hint: ./tg webgpu gets it", path, why));
}

// A shared object of 64 bits in memory. Every access is checked against the size of the file.
class SharedObject {
 public:
  explicit SharedObject(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) refuse(path, "cannot open the file");
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    const auto* header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_shentsize != sizeof(Elf64_Shdr))
      refuse(path, "not a shared object of 64 bits");
  }

  const std::vector<char>& bytes() const { return bytes_; }

  // The versions of the symbols in the dynamic table, by index.
  std::uint16_t* versions(std::size_t count) {
    const auto* header = at<Elf64_Ehdr>(0);
    const auto* sections = at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    for (int i = 0; i < header->e_shnum; ++i)
      if (sections[i].sh_type == SHT_GNU_versym)
        return at<std::uint16_t>(sections[i].sh_offset, count);
    refuse(path_, "symbols without versions");
  }

  // Calls `visit(symbol, name)` for the symbols of all tables of this type, in order.
  template <class Visit>
  void for_each_symbol(std::uint32_t table_type, Visit visit) {
    const auto* header = at<Elf64_Ehdr>(0);
    const auto* sections = at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    for (int i = 0; i < header->e_shnum; ++i) {
      const Elf64_Shdr& table = sections[i];
      if (table.sh_type != table_type) continue;
      if (table.sh_link >= header->e_shnum) refuse(path_, "a symbol table without names");
      const Elf64_Shdr& names = sections[table.sh_link];
      const char* text = at<char>(names.sh_offset, names.sh_size);
      const std::size_t count = table.sh_size / sizeof(Elf64_Sym);
      auto* symbols = at<Elf64_Sym>(table.sh_offset, count);
      for (std::size_t s = 0; s < count; ++s) {
        if (symbols[s].st_name >= names.sh_size) refuse(path_, "a symbol without a name");
        const char* name = text + symbols[s].st_name;
        visit(symbols[s],
              std::string_view(name, strnlen(name, names.sh_size - symbols[s].st_name)));
      }
    }
  }

 private:
  template <class T>
  T* at(std::uint64_t offset, std::uint64_t count = 1) {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T))
      refuse(path_, "the file is cut off");
    return reinterpret_cast<T*>(bytes_.data() + offset);
  }

  std::string path_;
  std::vector<char> bytes_;
};

std::map<std::string, std::uint64_t> entries_of(SharedObject& file, const std::string& path) {
  std::map<std::string, std::uint64_t> found;
  std::size_t symbols = 0;
  file.for_each_symbol(SHT_SYMTAB, [&](const Elf64_Sym& symbol, std::string_view name) {
    ++symbols;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0) return;
    for (const char* wanted : {kGetProcs, kSetProcs, kGetProcAddress})
      if (name == wanted) found.emplace(wanted, symbol.st_value);
  });
  if (symbols == 0) refuse(path, "it has no symbol table: it was stripped");
  for (const char* wanted : {kGetProcs, kSetProcs, kGetProcAddress})
    if (!found.count(wanted)) refuse(path, fmt::format("it is not Dawn: it has no {}", wanted));
  return found;
}

// Symbols of Node that the file wants become weak: the loader accepts that they are missing.
void do_without_node(SharedObject& file) {
  file.for_each_symbol(SHT_DYNSYM, [](Elf64_Sym& symbol, std::string_view name) {
    if (symbol.st_shndx != SHN_UNDEF) return;
    if (name.starts_with("napi_") || name.starts_with("node_api_"))
      symbol.st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol.st_info));
  });
}

void silence(SharedObject& file) {
  constexpr std::string_view kNoEffect = "pthread_self";
  std::vector<std::pair<std::size_t, Elf64_Sym*>> printing;
  std::optional<std::pair<std::size_t, Elf64_Sym>> no_effect;
  std::size_t count = 0;
  file.for_each_symbol(SHT_DYNSYM, [&](Elf64_Sym& symbol, std::string_view name) {
    const std::size_t index = count++;
    if (symbol.st_shndx != SHN_UNDEF) return;
    if (name == kNoEffect) no_effect.emplace(index, symbol);
    if (name == "__fprintf_chk" || name == "__printf_chk" || name == "fprintf" || name == "printf")
      printing.emplace_back(index, &symbol);
  });
  if (!no_effect) return;
  std::uint16_t* versions = file.versions(count);
  for (const auto& [index, symbol] : printing) {
    *symbol = no_effect->second;
    versions[index] = versions[no_effect->first];
  }
}

// Loads bytes as a library. The descriptor stays open: the loader knows the library by its name,
// and another file with the same descriptor would count as the same library.
void* load_from_memory(const std::vector<char>& bytes, const std::string& path) {
  constexpr std::size_t kLongestName = 240;  // of memfd_create
  const std::string name = path.substr(path.size() - std::min(path.size(), kLongestName));
  const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file < 0) refuse(path, std::strerror(errno));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written <= 0) {
      const std::string why = std::strerror(errno);
      close(file);
      refuse(path, why);
    }
    done += static_cast<std::size_t>(written);
  }
  void* library = dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const std::string why = dlerror();
    close(file);
    refuse(path, why);
  }
  return library;
}

FindFunction load_new(const std::string& path) {
  SharedObject file(path);
  const auto entries = entries_of(file, path);
  do_without_node(file);
  silence(file);
  void* library = load_from_memory(file.bytes(), path);
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) refuse(path, dlerror());
  const auto address = [&](const char* name) { return map->l_addr + entries.at(name); };
  const auto procs = reinterpret_cast<const void* (*)()>(address(kGetProcs));
  const auto set_procs = reinterpret_cast<void (*)(const void*)>(address(kSetProcs));
  const auto find = reinterpret_cast<void* (*)(api::StringView)>(address(kGetProcAddress));
  set_procs(procs());
  return [find](const char* name) { return find(std::string_view(name)); };
}

}  // namespace

bool is_node_addon(const std::string& path) { return path.ends_with(".node"); }

std::map<std::string, std::uint64_t> dawn_node_entries(const std::string& path) {
  SharedObject file(path);
  return entries_of(file, path);
}

FindFunction load_dawn_node(const std::string& path) {
  // A second copy of a file would be another library: devices of the first must not get its
  // functions.
  static std::mutex mutex;
  static std::map<std::string, FindFunction> loaded;
  std::error_code error;
  const std::string key = std::filesystem::weakly_canonical(path, error).string();
  std::lock_guard lock(mutex);
  FindFunction& known = loaded[error ? path : key];
  if (!known) known = load_new(path);
  return known;
}

std::string original_path(const std::string& listed) {
  if (!listed.starts_with("/proc/self/fd/")) return listed;
  char target[4096];
  const ssize_t length = readlink(listed.c_str(), target, sizeof target);
  std::string_view name(target, length < 0 ? 0 : static_cast<std::size_t>(length));
  constexpr std::string_view kPrefix = "/memfd:", kSuffix = " (deleted)";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return listed;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  return std::string(name);
}

}  // namespace tensorgrad::webgpu
