import Linux
import TestSupport
import Testing

/// Each linked library costs start time and memory in every daemon and every command.
@Suite("The executable") struct LinkageTests {
  private static let file = Result { try ELFFile(TestMachine.executable) }

  private static let foundation = [
    "libFoundation.so", "libFoundationInternationalization.so", "lib_FoundationICU.so",
    "libFoundationNetworking.so", "libFoundationXML.so",
  ]

  @Test("The executable isn't linked with OpenSSL, which is loaded only to encrypt images")
  func noOpenSSL() throws {
    let file = try Self.file.get()
    #expect(!file.needed.contains { $0.hasPrefix("libcrypto") || $0.hasPrefix("libssl") })
    #expect(!file.undefined.contains { $0.hasPrefix("EVP_") || $0.hasPrefix("OPENSSL_") })
    // Checks that the ELF file is read correctly: these are linked.
    #expect(file.needed.contains("libc.so.6"))
    #expect(file.needed.contains("libzstd.so.1"))
    #expect(file.needed.contains("liblz4.so.1"))
    #expect(file.undefined.contains("dlopen"))
  }

  /// ArgumentParser brings FoundationEssentials.
  @Test func `The executable links no part of Foundation except FoundationEssentials`() throws {
    let file = try Self.file.get()
    #expect(file.needed.filter(Self.foundation.contains) == [])
    // `$s10Foundation…` is a symbol of the module Foundation; ICU's begin with u and its version.
    #expect(file.undefined.filter { $0.hasPrefix("$s10Foundation") } == [])
    #expect(file.undefined.filter { $0.hasPrefix("$s30FoundationInternationalization") } == [])
  }

  @Test
  func `The executable is installed without symbols; debuggers find them by build ID`() throws {
    let scratch = try Scratch()
    let source = try scratch.write(
      "tool.c", "int helper(int x) { return x; } int main() { return helper(7); }")
    let tool = "\(scratch.path)/tool"
    try done(["cc", "-g", "-Wl,--build-id=0x0123456789abcdef", "-o", tool, source], scratch)
    #expect(try ELFFile(tool).hasSymbols)
    let prefix = "\(scratch.path)/prefix"
    let script = "\(TestMachine.root)/scripts/install-executable"
    try done([script, tool, prefix], scratch)
    #expect(try !ELFFile("\(prefix)/bin/tool").hasSymbols)
    #expect(try Command(arguments: ["\(prefix)/bin/tool"]).run(in: scratch).code == 7)
    let symbols = try ELFFile("\(prefix)/lib/debug/.build-id/01/23456789abcdef.debug")
    #expect(symbols.hasSymbols)
  }

  @Test("An executable without a build ID is installed with its symbols, and a message says so")
  func withoutBuildID() throws {
    let scratch = try Scratch()
    let source = try scratch.write("tool.c", "int main() { return 7; }")
    let tool = "\(scratch.path)/tool"
    try done(["cc", "-Wl,--build-id=none", "-o", tool, source], scratch)
    let prefix = "\(scratch.path)/prefix"
    let script = "\(TestMachine.root)/scripts/install-executable"
    let outcome = try Command(arguments: [script, tool, prefix]).run(in: scratch)
    #expect(outcome.code == 0)
    #expect(outcome.error.contains("tool is installed with its symbols: it has no build ID"))
    #expect(try ELFFile("\(prefix)/bin/tool").hasSymbols)
    #expect(try listDirectory(prefix) == ["bin"])
  }

  private func done(_ arguments: [String], _ scratch: Scratch) throws {
    let outcome = try Command(arguments: arguments).run(in: scratch)
    try #require(outcome.code == 0, "\(arguments): \(outcome.error)")
  }
}
