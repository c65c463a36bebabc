import CLinux
import Linux

/// The kind of machine that an image belongs to: registers and pages mean nothing on another one.
///
/// It is in the version field of the header, so that a reader that doesn't know it reports an
/// unknown version. Bits 24…31 have the processor. Bits 20…23 have the page size, as the power of
/// two by which it exceeds 4 KiB. Both are 0 for x86-64.
public struct ImageMachine: Hashable, Sendable {
  static let mask: UInt32 = 0xfff0_0000

  let bits: UInt32

  /// Reads the machine from a version field.
  init(version: UInt32) { bits = version & Self.mask }

  init(processor: UInt32, pageSize: UInt64) {
    let exponent = UInt32(pageSize.trailingZeroBitCount)
    bits = processor << 24 | (exponent &- 12) << 20 & 0xf0_0000
  }

  /// Checks a version field: first the format, then the machine.
  static func check(version field: UInt32, of path: String) throws(ImageError) {
    let version = field & ~(mask | ImageLayout.sealed | ImageLayout.blocks)
    guard version == ImageLayout.version else {
      throw .unknownVersion(path: path, version: version)
    }
    let machine = ImageMachine(version: field)
    guard machine == .current else { throw .ofAnotherMachine(path: path, machine) }
  }

  static let current = ImageMachine(processor: clinux_architecture(), pageSize: pageSize)
}

extension ImageMachine: CustomStringConvertible {
  public var description: String {
    let processor =
      switch Int(bits >> 24) {
      case CLINUX_ARCHITECTURE_X86_64: "x86-64"
      case CLINUX_ARCHITECTURE_ARM64: "arm64"
      default: "processor \(bits >> 24)"
      }
    return "\(processor) with pages of \(4 << (bits >> 20 & 15)) KiB"
  }
}
