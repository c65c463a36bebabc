import Glibc
import Hibernation
import Linux
import Supervision

/// Removes what is left of workers that ended while there was no daemon. Called while the daemon starts.
struct SurvivorRemains {
  let state: StateDirectory
  let records: WorkerRecordKeeper
  let snapshots: SnapshotKeeper
  let bootID: String
  let log: DaemonLog

  /// Of a worker whose record exists, and whose process doesn't.
  func remove(_ record: WorkerRecord) {
    if record.bootID == bootID, record.external == nil { removeGroup(of: record) }
    removeImage(of: record.name, isUnreadableNeeded: false)
    snapshots.remove(record.name)
    records.remove(record.name)
  }

  /// Ends the remaining processes in the cgroup of a worker whose root process has ended, as a daemon would
  /// have done. Only a cgroup shows reliably which processes belong to the worker.
  private func removeGroup(of record: WorkerRecord) {
    guard let path = record.cgroupPath, fileExists(path) else { return }
    do throws(CgroupError) {
      let group = try WorkerCgroup(path: path)
      try group.kill()
      try group.remove(until: Deadline(in: .seconds(1)))
    } catch { log(.warning, "\(record.name): \(error)") }
  }

  /// Removes images and snapshots whose workers don't exist any more. It keeps those of workers that couldn't
  /// be adopted, or whose record is damaged or lost: while they may live, the image is the only
  /// copy of their memory.
  func removeOrphans() {
    var workers: Set<String> = []
    // A directory that can't be read keeps what is in it.
    for name in (try? listDirectory(state.images)) ?? [] {
      guard let suffix = [".image", ".image.partial", ".image.base"].first(where: name.hasSuffix),
        !records.contains(String(name.dropLast(suffix.count)))
      else { continue }
      workers.insert(String(name.dropLast(suffix.count)))
    }
    for worker in workers.sorted() { removeImage(of: worker, isUnreadableNeeded: true) }
    snapshots.removeAll { !records.contains($0) }
  }

  private func removeImage(of worker: String, isUnreadableNeeded: Bool) {
    let path = state.image(of: worker)
    // What was being written isn't the only copy: memory is freed when the image is complete.
    discardFile(path + ".partial")
    if let obstacle = Hibernator.removeUnlessNeeded(path, isUnreadableNeeded: isUnreadableNeeded) {
      log(.error, "\(worker): its image \(path) is kept: \(obstacle)")
    }
  }
}
