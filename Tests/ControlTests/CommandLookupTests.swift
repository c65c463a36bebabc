import Control
import Glibc
import TestSupport
import Testing

@testable import struct Control.ProcessEnvironment

/// A directory with `bin/tool` (a program), `bin/notes` (not executable) and `other/tool`.
private final class Tree {
  private let scratch: Scratch
  var root: String { scratch.path }

  init() throws {
    scratch = try Scratch()
    for directory in ["bin", "other", "bin/folder"] { mkdir("\(root)/\(directory)", 0o755) }
    for (file, mode) in [("bin/tool", 0o755), ("bin/notes", 0o644), ("other/tool", 0o755)] {
      close(open("\(root)/\(file)", O_CREAT | O_WRONLY, mode_t(mode)))
    }
  }
}

@Suite struct CommandLookup {
  @Test func `A command's name is found in the first directory of PATH that has it`() throws {
    let tree = try Tree()
    let root = tree.root
    #expect(
      try locateCommand(
        "tool", searchPath: "\(root)/none:\(root)/bin:\(root)/other", directory: "/")
        == "\(root)/bin/tool")
    #expect(
      try locateCommand("tool", searchPath: "\(root)/other:\(root)/bin", directory: "/")
        == "\(root)/other/tool")
  }

  @Test
  func `Relative commands and relative entries of PATH are resolved from the worker's directory`()
    throws
  {
    let tree = try Tree()
    let root = tree.root
    for (command, path) in [("./tool", "/bin"), ("../other/tool", "/bin"), ("tool", ":/bin")] {
      let located = try locateCommand(command, searchPath: path, directory: "\(root)/bin")
      #expect(located.hasPrefix("\(root)/bin/") && located.hasSuffix("tool"))
      #expect(access(located, X_OK) == 0)
    }
  }

  @Test func `Each reason why a command can't be started has its own error`() throws {
    let tree = try Tree()
    let bin = "\(tree.root)/bin"
    let table: [(String, CommandLookupError)] = [
      ("nonsuch", .notFoundInPath("nonsuch")), ("", .notFound("")),
      ("./nonsuch", .notFound("./nonsuch")), ("notes", .notExecutable("\(bin)/notes")),
      ("./notes", .notExecutable("./notes")), ("./folder", .isDirectory("./folder")),
      ("folder", .notFoundInPath("folder")),
    ]
    for (command, expected) in table {
      #expect(throws: expected) {
        try locateCommand(command, searchPath: bin, directory: bin)
      }
    }
  }

  @Test
  func `An environment block is read as getenv reads it, and names of broken values are reported`()
  {
    let block = Array("A=1\0EMPTY=\0A=2\0nonsense\0=C:\0X=a=b\0BAD=".utf8) + [0xFF, 0]
    let environment = ProcessEnvironment(block: block)
    #expect(environment.variables == ["A": "1", "EMPTY": "", "X": "a=b"])
    #expect(environment.unusable == ["BAD"])
  }
}
