// Links several pieces into one shader: each workgroup runs one of them.
#pragma once

#include <span>
#include <string>

#include "codegen/wgsl/source.h"

namespace tensorgrad::wgsl {

// Why the pieces cannot share a shader on the target; empty if they can. They must agree on memory
// declarations and workgroup size.
std::string why_not(std::span<const Piece> pieces, const Target& target);

// Links one or more pieces into one shader. With several, the functions of each piece are renamed,
// and the pieces share workgroup memory: no workgroup runs two of them.
Shader link(std::span<const Piece> pieces, const Target& target);

}  // namespace tensorgrad::wgsl
