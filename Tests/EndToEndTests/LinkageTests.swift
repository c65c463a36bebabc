import Linux
import Testing

/// What the executable is linked with costs start time and memory in every daemon and every command.
@Suite("The executable") struct LinkageTests {
  private static let file = Result { try ELFFile(Surroundings.executable) }

  /// Yams, which reads YAML, brings all of Foundation. Without it, ArgumentParser brings FoundationEssentials.
  private static let hasYams =
    (try? readText("\(Surroundings.root)/Package.swift"))?.contains("Yams") == true

  private static let foundation = [
    "libFoundation.so", "libFoundationInternationalization.so", "lib_FoundationICU.so",
    "libFoundationNetworking.so", "libFoundationXML.so",
  ]

  @Test("is linked with no OpenSSL, which is loaded where images are encrypted")
  func noOpenSSL() throws {
    let file = try Self.file.get()
    #expect(!file.needed.contains { $0.hasPrefix("libcrypto") || $0.hasPrefix("libssl") })
    #expect(!file.undefined.contains { $0.hasPrefix("EVP_") || $0.hasPrefix("OPENSSL_") })
    // What is read is right: these are there.
    #expect(file.needed.contains("libc.so.6"))
    #expect(file.needed.contains("libzstd.so.1"))
    #expect(file.undefined.contains("dlopen"))
  }

  @Test(
    "is linked with nothing of Foundation beyond the essentials",
    .disabled(if: hasYams, "Yams is linked with all of Foundation"))
  func noFoundation() throws {
    let file = try Self.file.get()
    #expect(file.needed.filter(Self.foundation.contains) == [])
    // `$s10Foundation…` is a symbol of the module Foundation; ICU's begin with u and its version.
    #expect(file.undefined.filter { $0.hasPrefix("$s10Foundation") } == [])
    #expect(file.undefined.filter { $0.hasPrefix("$s30FoundationInternationalization") } == [])
  }
}
