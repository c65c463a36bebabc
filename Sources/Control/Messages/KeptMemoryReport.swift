/// The workers that keep memory, and why each of them isn't asleep (`explain --savings`). Sizes are
/// in bytes.
public struct KeptMemoryReport: Codable, Hashable, Sendable {
  /// The sum of the footprints of all these workers.
  public var footprint: Int64
  /// The workers, the largest footprint first.
  public var workers: [Worker]

  public struct Worker: Codable, Hashable, Sendable {
    public var worker: String
    public var state: String
    public var footprint: Int64
    /// The step that the policy alone would take next.
    public var next: String?
    /// Everything that prevents the next step. It is empty if nothing does.
    public var obstacles: [ExplanationReport.Obstacle]
    public var isShadow: Bool
    /// What would let it sleep; absent if nothing prevents it, or only time does.
    public var remedy: RemedyReport?

    public init(
      worker: String, state: String, footprint: Int64, next: String? = nil,
      obstacles: [ExplanationReport.Obstacle] = [], isShadow: Bool = false
    ) {
      self.worker = worker
      self.state = state
      self.footprint = footprint
      self.next = next
      self.obstacles = obstacles
      self.isShadow = isShadow
    }
  }

  public init(workers: [Worker]) {
    self.workers = workers.sorted { ($0.footprint, $1.worker) > ($1.footprint, $0.worker) }
    footprint = workers.reduce(0) { $0 &+ $1.footprint }
  }

  /// True if the worker has processes, and its memory isn't on disk.
  public static func keepsMemory(_ worker: WorkerReport) -> Bool {
    worker.state != "hibernated" && worker.state != "terminated" && worker.footprint > 0
  }
}
