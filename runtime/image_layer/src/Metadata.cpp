//===- Metadata.cpp - what shaders tell the layer ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Metadata.h"

#include <limits>

namespace smartmem::image_layer {
namespace {

/// Push constants are 128 bytes on the smallest devices and no known device has more than 256.
constexpr uint32_t maxPushConstantDword = 63;

/// Parses the fields of one line; remembers the first error.
class FieldParser {
public:
  FieldParser(std::string_view line, std::string_view fields) : line_(line), rest_(fields) {}

  /// Splits off the next "key=value" (or bare "key"); false at the end or after an error.
  bool next(std::string_view &key, std::string_view &value) {
    if (!status_.ok() || rest_.empty())
      return false;
    if (rest_.front() != ' ')
      return fail("fields are separated by one space");
    rest_.remove_prefix(1);
    std::string_view token = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(token.size());
    size_t equals = token.find('=');
    key = token.substr(0, equals);
    value = equals == std::string_view::npos ? std::string_view() : token.substr(equals + 1);
    if (key.empty())
      return fail("empty field");
    for (std::string_view seen : seen_)
      if (seen == key)
        return fail("field '" + std::string(key) + "' appears twice");
    seen_.push_back(key);
    return true;
  }

  /// Reads an unsigned decimal number that fits 32 bits.
  bool number(std::string_view text, uint32_t &result) {
    uint64_t value = 0;
    bool valid = !text.empty() && text.size() <= 10;
    for (char digit : text) {
      valid = valid && digit >= '0' && digit <= '9';
      value = value * 10 + static_cast<uint64_t>(digit - '0');
    }
    if (!valid || value > std::numeric_limits<uint32_t>::max())
      return fail("'" + std::string(text) + "' is not an unsigned 32-bit number");
    result = static_cast<uint32_t>(value);
    return true;
  }

  void quantity(std::string_view text, std::optional<Quantity> &result) {
    Quantity quantity;
    quantity.isPushConstant = text.substr(0, 2) == "pc";
    if (!number(quantity.isPushConstant ? text.substr(2) : text, quantity.value))
      return;
    if (quantity.isPushConstant && quantity.value > maxPushConstantDword)
      fail(format("push-constant dword %u is out of range", quantity.value));
    result = quantity;
  }

  bool has(std::string_view key) const {
    for (std::string_view seen : seen_)
      if (seen == key)
        return true;
    return false;
  }

  bool fail(const std::string &why) {
    if (status_.ok())
      status_ = Status::invalid("malformed shader metadata \"" + std::string(line_) + "\": " + why);
    return false;
  }

  const Status &status() const { return status_; }

private:
  std::string_view line_;
  std::string_view rest_;
  std::vector<std::string_view> seen_;
  Status status_;
};

Status parseImage(FieldParser parser, ModuleMetadata &metadata) {
  ImageMetadata image;
  std::string_view key, value;
  while (parser.next(key, value)) {
    if (key == "set")
      parser.number(value, image.set);
    else if (key == "binding")
      parser.number(value, image.binding);
    else if (key == "w")
      parser.quantity(value, image.width);
    else if (key == "h")
      parser.quantity(value, image.height);
    else if (key == "d")
      parser.quantity(value, image.depth);
    else if (key == "offset")
      parser.quantity(value, image.offset);
    else if (key != "fmt")
      parser.fail("unknown field '" + std::string(key) + "'");
    else if (image.format = findFormatByName(value); !image.format)
      parser.fail("unknown format '" + std::string(value) + "'");
  }
  if (!parser.has("set") || !parser.has("binding"))
    parser.fail("'set' and 'binding' are required");
  for (const ImageMetadata &other : metadata.images)
    if (other.set == image.set && other.binding == image.binding)
      parser.fail("the binding is described twice");
  for (const std::optional<Quantity> &extent : {image.width, image.height, image.depth})
    if (extent && !extent->isPushConstant && extent->value == 0)
      parser.fail("an extent is zero");
  metadata.images.push_back(image);
  return parser.status();
}

Status parseKernel(FieldParser parser, ModuleMetadata &metadata) {
  std::string_view key, value;
  while (parser.next(key, value)) {
    if (key == "name" && !value.empty())
      metadata.kernelName = value;
    else if (key == "exact" && value.empty())
      metadata.exactBindings = true;
    else
      parser.fail("unknown field '" + std::string(key) + "'");
  }
  return parser.status();
}

Status parseCanary(FieldParser parser, ModuleMetadata &metadata) {
  std::string_view key, value;
  uint32_t specId = 0;
  while (parser.next(key, value)) {
    if (key == "spec")
      parser.number(value, specId);
    else
      parser.fail("unknown field '" + std::string(key) + "'");
  }
  if (!parser.has("spec"))
    parser.fail("'spec' is required");
  metadata.canarySpecId = specId;
  return parser.status();
}

} // namespace

Status parseMetadataLine(std::string_view line, ModuleMetadata &metadata) {
  if (line.substr(0, 9) != "smartmem.")
    return {};
  size_t end = line.find(' ');
  std::string_view keyword = line.substr(0, end);
  FieldParser parser(line, end == std::string_view::npos ? std::string_view() : line.substr(end));
  if (keyword == "smartmem.image.v1")
    return parseImage(parser, metadata);
  if (keyword == "smartmem.kernel.v1")
    return parseKernel(parser, metadata);
  if (keyword == "smartmem.canary.v1")
    return parseCanary(parser, metadata);
  parser.fail("this layer knows smartmem.image.v1, smartmem.kernel.v1 and smartmem.canary.v1");
  return parser.status();
}

} // namespace smartmem::image_layer
