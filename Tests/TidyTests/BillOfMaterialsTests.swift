import Foundation
import Testing

/// `scripts/sbom` over a Package.resolved of a test's own.
@Suite("scripts/sbom") struct BillOfMaterialsTests {
  @Test("The bill of materials names each pinned package with its version, revision and licence")
  func pins() throws {
    let run = try Self.run(identity: "swift-argument-parser")
    #expect(run.code == 0, "\(run.error)")
    let root = try #require(
      try JSONSerialization.jsonObject(with: run.document) as? [String: Any])
    #expect(root["spdxVersion"] as? String == "SPDX-2.3")
    let info = try #require(root["creationInfo"] as? [String: Any])
    #expect(info["created"] as? String == "2023-11-14T22:13:20Z")
    let packages = try #require(root["packages"] as? [[String: Any]])
    let pin = try #require(packages.first { $0["name"] as? String == "swift-argument-parser" })
    #expect(pin["versionInfo"] as? String == "1.2.3")
    #expect(pin["downloadLocation"] as? String == "git+https://example.org/a/b@c0ffee")
    #expect(pin["licenseDeclared"] as? String == "Apache-2.0 WITH Swift-exception")
    let swift = try #require(packages.first { $0["name"] as? String == "swift" })
    #expect(swift["versionInfo"] as? String == "6.9.1")
    // Each relationship is between elements of the document.
    let identifiers = Set(packages.compactMap { $0["SPDXID"] as? String } + ["SPDXRef-DOCUMENT"])
    let relations = try #require(root["relationships"] as? [[String: Any]])
    #expect(relations.count == packages.count)
    for relation in relations {
      for key in ["spdxElementId", "relatedSpdxElement"] {
        #expect(identifiers.contains(relation[key] as? String ?? ""))
      }
    }
    #expect(try Self.run(identity: "swift-argument-parser").document == run.document)
  }

  @Test func `A dependency whose licence isn't known is an error`() throws {
    let run = try Self.run(identity: "something-new")
    #expect(run.code == 1 && run.error.contains("something-new: its licence isn't in this script"))
  }

  private static func run(
    identity: String
  ) throws -> (code: Int32, error: String, document: Data) {
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "dormouse-sbom-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let compiler = directory.appending(path: "swift")
    try "#!/bin/sh\necho 'Swift version 6.9.1 (x)'\n".write(
      to: compiler, atomically: false, encoding: .utf8)
    chmod(compiler.path(), 0o700)
    let resolved = directory.appending(path: "Package.resolved")
    let pin = """
      {"identity": "\(identity)", "kind": "remoteSourceControl",
       "location": "https://example.org/a/b",
       "state": {"revision": "c0ffee", "version": "1.2.3"}}
      """
    try #"{"pins": [\#(pin)], "version": 3}"#.write(
      to: resolved, atomically: false, encoding: .utf8)
    let output = directory.appending(path: "out.json")
    let process = Process()
    process.executableURL = Repository.root.appending(path: "scripts/sbom")
    process.arguments = [resolved.path(), output.path()]
    process.environment = ProcessInfo.processInfo.environment.merging([
      "SWIFT": compiler.path(), "SOURCE_DATE_EPOCH": "1700000000",
    ]) { $1 }
    let pipe = Pipe()
    process.standardError = pipe
    try process.run()
    let error = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    // There is none after an error.
    let document = (try? Data(contentsOf: output)) ?? Data()
    return (process.terminationStatus, error, document)
  }
}
