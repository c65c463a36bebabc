import ContainerPlan
import Control
import KubernetesAPI
import PodReports

extension PodMember {
  var reference: PodReference { PodReference(namespace: namespace, name: pod, uid: uid) }
}

extension PodView {
  /// Returns the pods of these containers, with the daemon's workers for them.
  static func all(
    of containers: some Sequence<ContainerPlan.Container>, workers: [WorkerReport]
  ) -> [PodView] {
    var owners: [Int32: WorkerReport] = [:]
    for worker in workers { if let pid = worker.pid { owners[pid] = worker } }
    var pods: [PodReference: PodView] = [:]
    for container in containers {
      guard let member = container.member, !member.uid.isEmpty else { continue }
      let worker = owners[container.pid]
      let entry = PodView.Container(
        member.container, worker: worker?.name, state: worker?.state,
        footprint: worker?.footprint ?? 0, secondsInState: worker?.secondsInState ?? 0)
      let earlier = pods[member.reference]?.containers ?? []
      pods[member.reference] = PodView(
        member.reference, isStatic: member.isStatic, containers: earlier + [entry])
    }
    return Array(pods.values)
  }
}
