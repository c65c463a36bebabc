import JSONLines
import Lifecycle
import Policy

/// Encodes the events and directives of an engine as the bytes of one segment. It does no I/O: the
/// caller decides when and where the bytes are written.
public struct JournalEncoder: Sendable {
  private let profiles: ProfileCodec
  private var batch = SampleBatch()
  private var buffer: [UInt8] = []
  /// The bytes of the segment so far, including those that haven't been returned yet.
  public private(set) var size = 0

  /// Begins a segment with its header and a checkpoint of the engine. `SegmentHeader` explains the
  /// parameters.
  public init(
    _ engine: Engine, version: String, run: String, segment: Int64, wall: WallTime, at now: Instant
  ) throws {
    profiles = try ProfileCodec(base: engine.policy)
    var fields = FieldWriter()
    fields.set("journal", "dormouse")
    fields.set("format", SegmentHeader.format)
    fields.set("version", version)
    fields.set("run", run)
    fields.set("segment", segment)
    fields.set("t", now)
    fields.set("time", wall.text)
    fields.set("wall", wall.nanoseconds)
    try fields.set("policy", coded: engine.policy)
    append(fields)
    fields = FieldWriter()
    fields.set("t", now)
    fields.set("checkpoint", try profiles.checkpoint(engine))
    append(fields)
  }

  /// Returns all bytes that haven't been returned yet, in their order.
  public mutating func drainBytes() -> [UInt8] {
    endBatch()
    defer { buffer = [] }
    return buffer
  }

  /// Records an event that the engine has handled, and its directives.
  public mutating func record(
    _ event: Event, at now: Instant, directives: [Directive]
  ) throws {
    if directives.isEmpty, SampleBatch.accepts(event) {
      if !batch.hasRoom(for: event) { endBatch() }
      return batch.add(event, at: now)
    }
    var fields = FieldWriter()
    fields.set("t", now)
    try fields.set(event, profiles)
    if !directives.isEmpty {
      fields.set("do", .array(try directives.map { try JSON(directive: $0) }))
    }
    append(fields)
  }

  /// Records that the machine-wide rules have been replaced.
  public mutating func record(policy: LifecyclePolicy, at now: Instant) throws {
    var fields = FieldWriter()
    fields.set("t", now)
    fields.set("policy", try profiles.tree(policy))
    append(fields)
  }

  /// Records the wall clock. Call this if the clock has been set since it was recorded last.
  public mutating func record(wall: WallTime, at now: Instant) {
    var fields = FieldWriter()
    fields.set("t", now)
    fields.set("time", wall.text)
    fields.set("wall", wall.nanoseconds)
    append(fields)
  }

  private mutating func append(_ fields: FieldWriter) {
    endBatch()
    append(SealedLine.seal(fields))
  }

  private mutating func endBatch() {
    if let line = batch.drainBytes() { append(line) }
  }

  private mutating func append(_ line: [UInt8]) {
    buffer += line
    size += line.count
  }
}

extension ProfileCodec {
  /// The tree of the whole engine. It contains policies as their differences from the header's.
  func checkpoint(_ engine: Engine) throws -> JSON {
    var tree = try JSON(encoding: engine)
    tree.set("policy", try self.tree(engine.policy))
    mapProfiles(&tree, from: "profileBox", to: "profile", shortened)
    return tree
  }

  func engine(_ checkpoint: JSON) throws -> Engine {
    var tree = checkpoint
    guard let policy = checkpoint["policy"] else { throw JournalMismatch("`policy` is missing") }
    tree.set("policy", try JSON(encoding: try self.policy(policy)))
    mapProfiles(&tree, from: "profile", to: "profileBox", lengthened)
    return try tree.decode(Engine.self)
  }

  /// Replaces each worker's profile, if it has this name. Earlier versions wrote `profileBox`, with
  /// the whole policy, which is read as it is.
  private func mapProfiles(
    _ tree: inout JSON, from name: String, to newName: String, _ change: (JSON) -> JSON
  ) {
    guard var table = tree["workers"], let workers = table["workers"]?.elements else { return }
    let changed = workers.map { worker in
      guard case .object(var members) = worker["record"],
        let index = members.firstIndex(where: { $0.name == name })
      else { return worker }
      members[index] = JSON.Member(newName, change(members[index].value))
      var worker = worker
      worker.set("record", .object(members))
      return worker
    }
    table.set("workers", .array(changed))
    tree.set("workers", table)
  }
}
