import type { ServerResponse } from 'node:http';
import type { ControlPlane } from '../control-plane.ts';
import { sendText } from './http-respond.ts';

/** What only the node itself knows. */
export interface NodeHealth {
  /** The data directory's storage is open and has not failed. */
  storageOpen(): boolean;
  /** The node is on its way out and wants no new work. */
  draining(): boolean;
}

interface Check {
  readonly name: string;
  readonly ok: boolean;
}

/** Whether the process should be left alive. Never depends on a quorum: a restart would not bring one back. */
export function livenessChecks(health: NodeHealth): Check[] {
  // That this runs at all shows that the event loop turns.
  return [
    { name: 'eventLoop', ok: true },
    { name: 'storage', ok: health.storageOpen() },
  ];
}

/** Whether the node should be sent clients. */
export function readinessChecks(plane: ControlPlane, health: NodeHealth): Check[] {
  return [
    ...livenessChecks(health),
    { name: 'leaderKnown', ok: plane.leadership().leaderId !== null },
    { name: 'caughtUp', ok: plane.raftStatus().ready },
    { name: 'notDraining', ok: !health.draining() },
  ];
}

/** 200 or 503; with `verbose` a line a check. */
export function sendChecks(response: ServerResponse, checks: readonly Check[], verbose: boolean): void {
  const ok = checks.every((check) => check.ok);
  const lines = checks.map((check) => `[${check.ok ? '+' : '-'}] ${check.name}`);
  const failed = checks.filter((check) => !check.ok).map(({ name }) => name);
  const summary = ok ? 'ok' : `not ok: ${failed.join(', ')}`;
  sendText(response, ok ? 200 : 503, `${(verbose ? [...lines, summary] : [summary]).join('\n')}\n`);
}
