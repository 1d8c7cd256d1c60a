import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../raft/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { Route } from '../net.ts';
import type { NodeHealth } from './http-health.ts';
import { createHttpHandler, type MetricsSource } from './http-server.ts';
import { Caller } from './rpc-call.ts';
import { serveNodeStatus } from './rpc-cluster.ts';
import { RpcSockets } from './rpc-socket.ts';

export interface AdminSurfaceOptions {
  readonly plane: ControlPlane;
  readonly clock: Clock;
  readonly health: NodeHealth;
  readonly metrics: MetricsSource;
  /** Of the package. */
  readonly version: string;
  /** Told of every error that is our own fault; `where` is the method or the request line. */
  onFault(error: unknown, where: string): void;
}

/** The admin side of one node, to be mounted on its listener. */
export interface AdminSurface {
  /** For the listener's route `/rpc`. */
  readonly rpcRoute: Route;
  readonly http: (request: IncomingMessage, response: ServerResponse) => void;
  /** Closes the open WebSockets with 1001. */
  close(): void;
}

export function createAdminSurface(options: AdminSurfaceOptions): AdminSurface {
  const caller = new Caller(options);
  const sockets = new RpcSockets(caller);
  serveNodeStatus(options.plane);
  return {
    rpcRoute: sockets.route,
    http: createHttpHandler({ ...options, caller }),
    close: () => sockets.close(),
  };
}
