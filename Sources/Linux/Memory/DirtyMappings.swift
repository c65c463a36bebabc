import Glibc

/// The dirty memory of one or several processes, grouped by what it is mapped for: private dirty
/// pages, and swap (/proc/PID/smaps). It counts the same memory as `Footprint`, and in addition
/// dirty pages of files that are mapped shared.
public struct DirtyMappings: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable {
    case heap, stack, anonymous, file
    /// Files in tmpfs, memfds, and shared memory of System V.
    case sharedMemory = "shared_memory"
    /// A mapping with a name that the kernel gives, such as `[vdso]`.
    case other
  }

  /// All mappings for the same thing.
  public struct Group: Hashable, Sendable {
    public var kind: Kind
    /// The file's path, or the name that the process gave the memory. It is empty if there is none.
    public var name: String
    /// Dirty bytes in RAM. Swapped bytes aren't included.
    public var dirty: Int64 = 0
    public var swapped: Int64 = 0
    public var mappings = 0

    public var bytes: Int64 { dirty &+ swapped }
  }

  private struct Key: Hashable {
    var kind: Kind
    var name: String
  }

  private var groups: [Key: Group] = [:]
  public private(set) var processes = 0

  public init() {}

  /// The groups with dirty memory, the largest first.
  public var largestFirst: [Group] {
    groups.values.filter { $0.bytes > 0 }
      .sorted { ($0.bytes, $1.kind.rawValue, $1.name) > ($1.bytes, $0.kind.rawValue, $0.name) }
  }

  /// Adds a process. Reading takes long if the process has thousands of mappings; none of its pages
  /// is accessed.
  ///
  /// - Returns: false if it has ended.
  public mutating func add(_ pid: Int32) throws(FootprintError) -> Bool {
    do throws(SystemCallError) {
      add(smaps: try readFile("/proc/\(pid)/smaps"), stackPointers: Self.stackPointers(of: pid))
      return true
    } catch {
      if error.meansVanished { return false }
      throw FootprintError(pid: pid, cause: error)
    }
  }

  /// - Parameter stackPointers: the stack pointers of its threads, as far as they are known.
  mutating func add(smaps: [UInt8], stackPointers: [UInt64]) {
    processes += 1
    var key: Key?
    for line in smaps.lines() {
      // Headers begin with a lower-case hexadecimal address. Fields begin with a capital.
      if line.first.map({ $0 < UInt8(ascii: "A") || $0 > UInt8(ascii: "Z") }) == true {
        key = MemoryMapping(header: line).map { Self.key(of: $0, stackPointers) }
        if let key { groups[key, default: Group(kind: key.kind, name: key.name)].mappings += 1 }
      } else if let key, let colon = line.firstIndex(of: UInt8(ascii: ":")) {
        let size = kilobytes(line[(colon + 1)...])
        switch String(decoding: line[..<colon], as: UTF8.self) {
        case "Private_Dirty": groups[key]?.dirty &+= size ?? 0
        case "Swap": groups[key]?.swapped &+= size ?? 0
        default: break
        }
      }
    }
  }

  private static func key(of mapping: MemoryMapping, _ stackPointers: [UInt64]) -> Key {
    let name = mapping.name
    if name == "[heap]" { return Key(kind: .heap, name: "") }
    if name.hasPrefix("[stack") { return Key(kind: .stack, name: "") }
    if stackPointers.contains(where: { mapping.start <= $0 && $0 < mapping.end }) {
      return Key(kind: .stack, name: "")
    }
    if name.hasPrefix("[anon:") || name.hasPrefix("[anon_shmem:") {
      return Key(kind: .anonymous, name: String(name.drop { $0 != ":" }.dropFirst().dropLast()))
    }
    if name.isEmpty { return Key(kind: .anonymous, name: "") }
    if name.hasPrefix("[") { return Key(kind: .other, name: name) }
    let isShared = ["/memfd:", "/SYSV", "/dev/shm/", "/dev/zero"].contains { name.hasPrefix($0) }
    return Key(kind: isShared ? .sharedMemory : .file, name: name)
  }

  /// The stack pointers of all threads that wait in the kernel. The stack of another thread counts
  /// as anonymous memory.
  private static func stackPointers(of pid: Int32) -> [UInt64] {
    // The stacks of a process that has ended, or may not be examined, aren't known.
    ((try? threads(of: pid)) ?? []).compactMap { thread in
      // The file has `NUMBER ARGUMENTS… SP PC` (proc_pid_syscall(5)), or `running`. A thread that
      // has ended is skipped.
      let fields = (try? readFile("/proc/\(pid)/task/\(thread)/syscall"))?.words() ?? []
      guard fields.count >= 3 else { return nil }
      return fields[fields.count - 2].dropFirst(2).number(radix: 16)
    }
  }
}
