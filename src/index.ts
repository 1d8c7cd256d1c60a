/** The package's face for programs that embed a node or read its errors. */
export { EvenkeelError, ERRORS, type ErrorCode } from './errors.ts';
export { readServeConfig, type ServeConfig } from './config.ts';
export { startNode, type NodeOptions, type RunningNode } from './server.ts';
export { createSystemClock } from './clock.ts';
export { createSystemRandom } from './random.ts';
export { createWebSocketNet } from './net-ws.ts';
export { createLevelDisk } from './disk-level.ts';
export { createLogger, SILENT_LOGGER, type Logger } from './logger.ts';
export { VERSION } from './version.ts';
