export { MAX_RPC_MESSAGE_BYTES } from './rpc-socket.ts';
export { createAdminSurface, type AdminSurface, type AdminSurfaceOptions } from './rpc-surface.ts';
export type { NodeHealth } from './http-health.ts';
export { countLevels } from './rpc-levels.ts';
export { countReplication, sumReplication } from './rpc-replication.ts';
export {
  PeerTransport,
  type PeerCallContext,
  type PeerService,
  type PeerTransportOptions,
} from './peer-transport.ts';
export type { PeerIdentity } from './peer-codec.ts';
export { RPC_METHODS, findMethod } from './rpc-registry.ts';
export { MAX_IMPORT_PART_BYTES } from './rpc-import.ts';
export type { RpcMethod } from './rpc-types.ts';
export { createBrokerSurface, type BrokerSurface } from './broker-route.ts';
export type { HealthCheck, MemberRow, PlacementStatus } from './rpc-cluster.ts';
export type { BrokerItem } from './rpc-broker.ts';
export type { ResourceItem } from './rpc-resource.ts';
export type { MoveItem } from './rpc-move.ts';
export type { ReplicationRow } from './rpc-replication.ts';
