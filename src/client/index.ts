export { AdminClient, DEFAULT_CALL_TIMEOUT_MS, type AdminClientOptions } from './admin-client.ts';
export type { AdminAnswer, Notification } from './admin-link.ts';
export { AdminWatch, type AdminWatchOptions } from './admin-watch.ts';
export { BrokerClient, type BrokerClientHandlers, type BrokerClientOptions } from './broker-client.ts';
export { BrokerView, type ViewUpdate } from './broker-view.ts';
export { Lease, type Moment } from './lease.ts';
export type { StoreCount } from './store-count.ts';
