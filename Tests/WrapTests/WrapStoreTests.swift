import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Wrap

@Suite("Where wrappers keep what must outlive them") struct WrapStoreTests {
  private let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    #expect(chmod(scratch.path, 0o700) == 0)
  }

  private func add(_ name: String, image bytes: Int) throws {
    let directory = "\(scratch.path)/wrap/\(name)"
    for path in ["\(scratch.path)/wrap", directory, "\(directory)/images", "\(directory)/workers"] {
      mkdir(path, 0o700)
    }
    try scratch.write("wrap/\(name)/lock", "")
    try scratch.write("wrap/\(name)/images/\(name).image", String(repeating: "x", count: bytes))
  }

  private func exists(_ path: String) -> Bool { access("\(scratch.path)/\(path)", F_OK) == 0 }

  @Test func `All wrappers' images count against one budget`() throws {
    #expect(WrapStore.imageBytes(in: scratch.path) == 0)
    try add("clangd-1", image: 1000)
    try add("pylsp-2", image: 234)
    #expect(WrapStore.imageBytes(in: scratch.path) == 1234)
  }

  @Test(
    "The files of a killed wrapper are removed, and those that a living wrapper has locked stay")
  func remains() throws {
    try add("dead-1", image: 10)
    try add("alive-2", image: 20)
    let lock = try Descriptor.open("\(scratch.path)/wrap/alive-2/lock", O_RDWR)
    #expect(flock(lock.raw, LOCK_EX | LOCK_NB) == 0)
    try scratch.write("dead-1.sock", "")
    let store = try WrapStore(stateDirectory: scratch.path)
    store.cleanUpAfterKilledWrappers(socketDirectory: scratch.path)
    #expect(!exists("wrap/dead-1") && !exists("dead-1.sock"))
    #expect(exists("wrap/alive-2/images/alive-2.image"))
  }

  @Test func `Files that no wrapper makes are never removed`() throws {
    try add("dead-1", image: 10)
    try scratch.write("wrap/dead-1/thesis.tex", "years")
    WrapStore.cleanUp("\(scratch.path)/wrap/dead-1", socket: "\(scratch.path)/no.sock", roots: [])
    #expect(exists("wrap/dead-1/thesis.tex") && !exists("wrap/dead-1/images"))
  }

  @Test func `A guardian is made only while the wrapper has one thread`() {
    // The process of this test has several threads.
    #expect(throws: SystemCallError.self) {
      _ = try Guardian(directory: scratch.path, socket: scratch.path + "/no.sock")
    }
  }
}

@Suite("A wrapper's name") struct WrapSettingsTests {
  private func name(_ command: String...) -> String {
    WrapSettings(
      command: command, path: "/bin/true", inheritance: Inheritance(firstArgument: 1),
      policy: .wrapping(), stateDirectory: "/state", daemonSocket: "/run/dormouse/control.sock",
      version: "1"
    ).name
  }

  @Test(
    "A wrapper's name is the program's name, made valid for a worker, and the wrapper's pid",
    arguments: [
      ("/usr/bin/clangd", "clangd"), ("x.py", "x"),
      ("a b\nc", "a_b_c"), ("-x", "w-x"), (".hidden", "w.hidden"),
      ("größe", "gr__e"), ("/", "worker"),
    ])
  func names(command: String, base: String) {
    #expect(name(command) == "\(base)-\(getpid())")
    #expect(NameRule.allows(name(command)))
  }

  @Test func `A long wrapper name is cut, and a wrapper without a command has a name too`() {
    #expect(name(String(repeating: "x", count: 500)).utf8.count < 64)
    #expect(name() == "worker-\(getpid())")
  }

  @Test func `The wrappers' sockets are in a directory beside the daemon's`() {
    let settings = WrapSettings(
      command: ["x"], path: "/bin/true", inheritance: Inheritance(firstArgument: 1),
      policy: .wrapping(), stateDirectory: "/state", daemonSocket: "/run/dormouse/control.sock",
      version: "1")
    #expect(settings.socketDirectory == "/run/dormouse/wrap")
  }
}
