export { Broker, type BrokerLog, type BrokerOptions } from './broker.ts';
export { openBrokerDirectory } from './data-directory.ts';
export { COPY_PATH } from './copy-protocol.ts';
export { DATA_ADDRESS, DATA_PATH, DATA_SUBPROTOCOL, MAX_DATA_FRAME_BYTES } from './data-api.ts';
