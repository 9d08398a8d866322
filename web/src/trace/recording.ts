// What tracing leaves: the calls of a program and the parameters of its model, as data. An engine
// replays it, on its own thread and again on a new device.
import type { Dtype } from '../wasm/arrays.js';
import type { Site } from './site.js';

/** A number as JSON can hold it. */
export type JsonNumber = number | 'Infinity' | '-Infinity' | 'NaN';
export type Json =
  JsonNumber | string | boolean | null | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

/** The text of a value for the library: JSON has no infinities and no NaN, so they are words. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'number' && !Number.isFinite(each) ? String(each) : each,
  );
}

/** A call of an op, or of a layer of the model. */
export interface OpCall {
  readonly op: string | number; // a layer is a number
  readonly args: string; // JSON
  readonly site: Site;
}

export interface ParamEntry {
  readonly kind: 'param';
  readonly name: string;
  readonly options: JsonObject;
  readonly values?: Float32Array<ArrayBuffer>;
}
export interface LayerEntry {
  readonly kind: 'layer';
  readonly name: string;
  readonly layer: string;
  readonly args: string;
  readonly site: Site;
}
/** The parameters and layers of a model, in the order of its fields. */
export type ModelEntries = readonly (ParamEntry | LayerEntry)[];

export interface InputType {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: Dtype;
}

export interface ProgramRecording {
  readonly kind: 'training' | 'forward' | 'attached';
  readonly options: JsonObject;
  readonly calls: readonly OpCall[];
  readonly outputs: readonly (readonly [name: string, tensor: number])[];
}

export interface ModelParameter {
  name: string;
  shape: readonly number[];
  decay: boolean;
  frozen: boolean;
}
