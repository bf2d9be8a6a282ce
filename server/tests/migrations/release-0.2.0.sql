--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: pg_trgm; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;


--
-- Name: EXTENSION pg_trgm; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON EXTENSION pg_trgm IS 'text similarity measurement and index searching based on trigrams';


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: alembic_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);


--
-- Name: applies; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.applies (
    id integer NOT NULL,
    submission_id integer,
    tree jsonb NOT NULL,
    toolchain text NOT NULL,
    result jsonb,
    state character varying(32) NOT NULL,
    outcome character varying(32),
    failure jsonb,
    attempts integer NOT NULL,
    fence bigint,
    holder text,
    claim_nonce text,
    expires_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    nudged_at timestamp with time zone,
    nudges integer NOT NULL,
    progress text NOT NULL,
    progress_done integer NOT NULL,
    progress_total integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT ck_applies_job_state CHECK (((state)::text = ANY ((ARRAY['waiting'::character varying, 'queued'::character varying, 'running'::character varying, 'finished'::character varying])::text[]))),
    CONSTRAINT ck_applies_outcome CHECK (((outcome)::text = ANY ((ARRAY['passed'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[])))
);


--
-- Name: applies_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.applies_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: applies_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.applies_id_seq OWNED BY public.applies.id;


--
-- Name: artifact_links; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.artifact_links (
    id integer NOT NULL,
    sha256 text NOT NULL,
    apply_id integer,
    build_id integer,
    run_id integer,
    kind character varying(32) NOT NULL,
    name text NOT NULL,
    CONSTRAINT ck_artifact_links_artifact_kind CHECK (((kind)::text = ANY ((ARRAY['series'::character varying, 'bundle'::character varying, 'kernel'::character varying, 'vmlinux'::character varying, 'system_map'::character varying, 'config'::character varying, 'modules'::character varying, 'module'::character varying, 'build_log'::character varying, 'metadata'::character varying, 'console'::character varying, 'raw_output'::character varying, 'workqueue_layout'::character varying, 'workqueue_series'::character varying])::text[])))
);


--
-- Name: artifact_links_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.artifact_links_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: artifact_links_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.artifact_links_id_seq OWNED BY public.artifact_links.id;


--
-- Name: artifacts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.artifacts (
    sha256 text NOT NULL,
    size bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: block_attempts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.block_attempts (
    run_id integer NOT NULL,
    block integer NOT NULL,
    attempt integer NOT NULL,
    finished boolean NOT NULL,
    device_name text NOT NULL,
    arm character varying(32),
    failure jsonb,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT ck_block_attempts_arm CHECK (((arm)::text = ANY ((ARRAY['baseline'::character varying, 'candidate'::character varying])::text[])))
);


--
-- Name: boot_values; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.boot_values (
    run_id integer NOT NULL,
    boot_id integer NOT NULL,
    scenario text NOT NULL,
    setting text NOT NULL,
    metric text NOT NULL,
    value double precision NOT NULL
);


--
-- Name: boots; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.boots (
    id integer NOT NULL,
    run_id integer NOT NULL,
    block integer NOT NULL,
    "position" integer NOT NULL,
    arm character varying(32) NOT NULL,
    attempt integer NOT NULL,
    device_name text NOT NULL,
    fence bigint NOT NULL,
    state character varying(32) NOT NULL,
    outcome character varying(32),
    failure jsonb,
    valid boolean NOT NULL,
    kernel_boot_id text,
    token text,
    build_id_gnu text,
    release text,
    cmdline text,
    topology jsonb,
    environment jsonb NOT NULL,
    commands jsonb NOT NULL,
    started_at timestamp with time zone NOT NULL,
    verified_at timestamp with time zone,
    finished_at timestamp with time zone,
    golden_s double precision,
    kexec_s double precision,
    workload_s double precision,
    overhead_s double precision,
    console_bytes bigint NOT NULL,
    console_truncated boolean NOT NULL,
    console_started_at timestamp with time zone,
    CONSTRAINT ck_boots_arm CHECK (((arm)::text = ANY ((ARRAY['baseline'::character varying, 'candidate'::character varying])::text[]))),
    CONSTRAINT ck_boots_boot_state CHECK (((state)::text = ANY ((ARRAY['booting'::character varying, 'measuring'::character varying, 'finished'::character varying])::text[]))),
    CONSTRAINT ck_boots_outcome CHECK (((outcome)::text = ANY ((ARRAY['passed'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[])))
);


--
-- Name: boots_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.boots_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: boots_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.boots_id_seq OWNED BY public.boots.id;


--
-- Name: browser_sessions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.browser_sessions (
    id integer NOT NULL,
    user_id integer NOT NULL,
    digest text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: browser_sessions_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.browser_sessions_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: browser_sessions_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.browser_sessions_id_seq OWNED BY public.browser_sessions.id;


--
-- Name: builds; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.builds (
    id integer NOT NULL,
    key text NOT NULL,
    source jsonb NOT NULL,
    recipe jsonb NOT NULL,
    arch text NOT NULL,
    emulated boolean NOT NULL,
    fragments jsonb NOT NULL,
    modules jsonb NOT NULL,
    toolchain text NOT NULL,
    trusted boolean NOT NULL,
    result jsonb,
    state character varying(32) NOT NULL,
    outcome character varying(32),
    failure jsonb,
    attempts integer NOT NULL,
    fence bigint,
    holder text,
    claim_nonce text,
    expires_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    nudged_at timestamp with time zone,
    nudges integer NOT NULL,
    progress text NOT NULL,
    progress_done integer NOT NULL,
    progress_total integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT ck_builds_job_state CHECK (((state)::text = ANY ((ARRAY['waiting'::character varying, 'queued'::character varying, 'running'::character varying, 'finished'::character varying])::text[]))),
    CONSTRAINT ck_builds_outcome CHECK (((outcome)::text = ANY ((ARRAY['passed'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[])))
);


--
-- Name: builds_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.builds_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: builds_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.builds_id_seq OWNED BY public.builds.id;


--
-- Name: comparisons; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.comparisons (
    run_id integer NOT NULL,
    "position" integer NOT NULL,
    question character varying(32) NOT NULL,
    role character varying(32) NOT NULL,
    verdict character varying(32),
    data jsonb NOT NULL,
    CONSTRAINT ck_comparisons_question CHECK (((question)::text = ANY ((ARRAY['kernel'::character varying, 'setting'::character varying])::text[]))),
    CONSTRAINT ck_comparisons_role CHECK (((role)::text = ANY ((ARRAY['primary'::character varying, 'secondary'::character varying, 'explanatory'::character varying])::text[]))),
    CONSTRAINT ck_comparisons_verdict CHECK (((verdict)::text = ANY ((ARRAY['improvement'::character varying, 'regression'::character varying, 'equivalent'::character varying, 'below_threshold'::character varying, 'inconclusive'::character varying, 'no_evidence'::character varying, 'unsupported'::character varying, 'failed'::character varying])::text[])))
);


--
-- Name: console_chunks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.console_chunks (
    boot_id integer NOT NULL,
    "offset" bigint NOT NULL,
    data bytea NOT NULL
);


--
-- Name: device_checks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.device_checks (
    id integer NOT NULL,
    device_name text NOT NULL,
    by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    outcome character varying(32),
    failure jsonb,
    health_run_id integer,
    noise_run_id integer,
    changes integer NOT NULL,
    CONSTRAINT ck_device_checks_outcome CHECK (((outcome)::text = ANY ((ARRAY['passed'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[])))
);


--
-- Name: device_checks_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.device_checks_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: device_checks_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.device_checks_id_seq OWNED BY public.device_checks.id;


--
-- Name: devices; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.devices (
    name text NOT NULL,
    device_type text NOT NULL,
    lab text NOT NULL,
    facts jsonb NOT NULL,
    health character varying(32) NOT NULL,
    health_reason text NOT NULL,
    health_checked_at timestamp with time zone,
    check_requested_at timestamp with time zone,
    measured_topology jsonb,
    dirty boolean NOT NULL,
    retired_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    backend text DEFAULT 'labgrid'::text NOT NULL,
    CONSTRAINT ck_devices_device_health CHECK (((health)::text = ANY ((ARRAY['unknown'::character varying, 'good'::character varying, 'suspect'::character varying, 'quarantined'::character varying])::text[])))
);


--
-- Name: events; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.events (
    submission_id integer NOT NULL,
    seq integer NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    kind character varying(32) NOT NULL,
    build_id integer,
    run_id integer,
    boot_id integer,
    data jsonb NOT NULL,
    CONSTRAINT ck_events_event_kind CHECK (((kind)::text = ANY ((ARRAY['submission_state'::character varying, 'apply_state'::character varying, 'build_state'::character varying, 'build_progress'::character varying, 'run_state'::character varying, 'run_progress'::character varying, 'boot_state'::character varying, 'block_finished'::character varying, 'block_discarded'::character varying, 'samples'::character varying, 'unsupported'::character varying, 'finding'::character varying, 'attempt_failed'::character varying, 'report_ready'::character varying])::text[])))
);


--
-- Name: fences; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.fences
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: findings; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.findings (
    id integer NOT NULL,
    run_id integer NOT NULL,
    boot_id integer NOT NULL,
    kind character varying(32) NOT NULL,
    title text NOT NULL,
    excerpt text NOT NULL,
    console_offset bigint NOT NULL,
    fatal boolean NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT ck_findings_finding_kind CHECK (((kind)::text = ANY ((ARRAY['panic'::character varying, 'oops'::character varying, 'bug'::character varying, 'warning'::character varying, 'lockdep'::character varying, 'hung_task'::character varying, 'lockup'::character varying, 'workqueue_stall'::character varying, 'rcu_stall'::character varying, 'kasan'::character varying, 'hang'::character varying, 'wrong_result'::character varying])::text[])))
);


--
-- Name: findings_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.findings_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: findings_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.findings_id_seq OWNED BY public.findings.id;


--
-- Name: health_changes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.health_changes (
    id integer NOT NULL,
    device_name text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    health character varying(32) NOT NULL,
    reason text NOT NULL,
    by text NOT NULL,
    run_id integer,
    CONSTRAINT ck_health_changes_device_health CHECK (((health)::text = ANY ((ARRAY['unknown'::character varying, 'good'::character varying, 'suspect'::character varying, 'quarantined'::character varying])::text[])))
);


--
-- Name: health_changes_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.health_changes_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: health_changes_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.health_changes_id_seq OWNED BY public.health_changes.id;


--
-- Name: kept_reports; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kept_reports (
    submission_id integer NOT NULL,
    document text NOT NULL,
    kept_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: lab_hosts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.lab_hosts (
    lab text NOT NULL,
    invited_by text NOT NULL,
    token_id integer NOT NULL,
    broker_digest text NOT NULL,
    joined_at timestamp with time zone DEFAULT now() NOT NULL,
    removed_at timestamp with time zone
);


--
-- Name: lab_invites; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.lab_invites (
    id integer NOT NULL,
    lab text NOT NULL,
    digest text NOT NULL,
    invited_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    withdrawn_at timestamp with time zone
);


--
-- Name: lab_invites_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.lab_invites_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: lab_invites_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.lab_invites_id_seq OWNED BY public.lab_invites.id;


--
-- Name: labs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.labs (
    name text NOT NULL,
    capacity integer NOT NULL,
    published_at timestamp with time zone DEFAULT now() NOT NULL,
    pool jsonb
);


--
-- Name: leases; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.leases (
    device_name text NOT NULL,
    run_id integer NOT NULL,
    fence bigint NOT NULL,
    holder text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: lookups; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.lookups (
    id integer NOT NULL,
    url text NOT NULL,
    owner text NOT NULL,
    result jsonb,
    state character varying(32) NOT NULL,
    outcome character varying(32),
    failure jsonb,
    attempts integer NOT NULL,
    fence bigint,
    holder text,
    claim_nonce text,
    expires_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    nudged_at timestamp with time zone,
    nudges integer NOT NULL,
    progress text NOT NULL,
    progress_done integer NOT NULL,
    progress_total integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT ck_lookups_job_state CHECK (((state)::text = ANY ((ARRAY['waiting'::character varying, 'queued'::character varying, 'running'::character varying, 'finished'::character varying])::text[]))),
    CONSTRAINT ck_lookups_outcome CHECK (((outcome)::text = ANY ((ARRAY['passed'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[])))
);


--
-- Name: lookups_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.lookups_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: lookups_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.lookups_id_seq OWNED BY public.lookups.id;


--
-- Name: run_attempts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_attempts (
    run_id integer NOT NULL,
    number integer NOT NULL,
    device_name text NOT NULL,
    fence bigint NOT NULL,
    holder text NOT NULL,
    outcome character varying(32),
    failure jsonb,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT ck_run_attempts_outcome CHECK (((outcome)::text = ANY ((ARRAY['passed'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[])))
);


--
-- Name: runs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.runs (
    id integer NOT NULL,
    submission_id integer,
    purpose character varying(32) NOT NULL,
    target integer NOT NULL,
    owner text NOT NULL,
    priority integer NOT NULL,
    device_type text NOT NULL,
    device_spec jsonb NOT NULL,
    plan_name text NOT NULL,
    plan jsonb NOT NULL,
    profile jsonb NOT NULL,
    files jsonb NOT NULL,
    recipe jsonb NOT NULL,
    fragments jsonb NOT NULL,
    modules jsonb NOT NULL,
    baseline_build_id integer,
    candidate_build_id integer,
    seed bigint NOT NULL,
    blocks jsonb NOT NULL,
    wanted_device text,
    device_name text,
    steps jsonb NOT NULL,
    boots_done integer NOT NULL,
    compared_at timestamp with time zone,
    verdict character varying(32),
    headline text NOT NULL,
    state character varying(32) NOT NULL,
    outcome character varying(32),
    failure jsonb,
    attempts integer NOT NULL,
    fence bigint,
    holder text,
    claim_nonce text,
    expires_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    nudged_at timestamp with time zone,
    nudges integer NOT NULL,
    progress text NOT NULL,
    progress_done integer NOT NULL,
    progress_total integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    wanted_backend text,
    CONSTRAINT ck_runs_job_state CHECK (((state)::text = ANY ((ARRAY['waiting'::character varying, 'queued'::character varying, 'running'::character varying, 'finished'::character varying])::text[]))),
    CONSTRAINT ck_runs_outcome CHECK (((outcome)::text = ANY ((ARRAY['passed'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[]))),
    CONSTRAINT ck_runs_run_purpose CHECK (((purpose)::text = ANY ((ARRAY['measure'::character varying, 'health_check'::character varying, 'noise'::character varying])::text[]))),
    CONSTRAINT ck_runs_verdict CHECK (((verdict)::text = ANY ((ARRAY['improvement'::character varying, 'regression'::character varying, 'equivalent'::character varying, 'below_threshold'::character varying, 'inconclusive'::character varying, 'no_evidence'::character varying, 'unsupported'::character varying, 'failed'::character varying])::text[])))
);


--
-- Name: runs_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.runs_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: runs_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.runs_id_seq OWNED BY public.runs.id;


--
-- Name: samples; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples (
    run_id integer NOT NULL,
    boot_id integer NOT NULL,
    scenario text NOT NULL,
    setting text NOT NULL,
    repetition integer NOT NULL,
    metric text NOT NULL,
    value double precision NOT NULL,
    warmup boolean NOT NULL
);


--
-- Name: sign_in_throttles; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sign_in_throttles (
    key text NOT NULL,
    attempts integer NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: submission_builds; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.submission_builds (
    id integer NOT NULL,
    submission_id integer NOT NULL,
    build_id integer NOT NULL,
    arm character varying(32) NOT NULL,
    recipe text NOT NULL,
    arch text NOT NULL,
    emulated boolean NOT NULL,
    CONSTRAINT ck_submission_builds_arm CHECK (((arm)::text = ANY ((ARRAY['baseline'::character varying, 'candidate'::character varying])::text[])))
);


--
-- Name: submission_builds_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.submission_builds_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: submission_builds_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.submission_builds_id_seq OWNED BY public.submission_builds.id;


--
-- Name: submissions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.submissions (
    id integer NOT NULL,
    request jsonb NOT NULL,
    owner text NOT NULL,
    idempotency_key text,
    retry_of integer,
    title text NOT NULL,
    series_key text NOT NULL,
    author text NOT NULL,
    version integer,
    tree text NOT NULL,
    priority integer NOT NULL,
    facets text[] NOT NULL,
    search text GENERATED ALWAYS AS (((((((title || chr(10)) || series_key) || chr(10)) || author) || chr(10)) || owner)) STORED NOT NULL,
    state character varying(32) NOT NULL,
    outcome character varying(32),
    failure jsonb,
    exit_code integer,
    cancel_requested_at timestamp with time zone,
    event_seq integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT ck_submissions_outcome CHECK (((outcome)::text = ANY ((ARRAY['passed'::character varying, 'failed'::character varying, 'canceled'::character varying])::text[]))),
    CONSTRAINT ck_submissions_submission_state CHECK (((state)::text = ANY ((ARRAY['applying'::character varying, 'building'::character varying, 'running'::character varying, 'comparing'::character varying, 'finished'::character varying])::text[])))
);
ALTER TABLE ONLY public.submissions ALTER COLUMN facets SET STATISTICS 1000;


--
-- Name: submissions_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.submissions_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: submissions_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.submissions_id_seq OWNED BY public.submissions.id;


--
-- Name: tick_faults; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tick_faults (
    what text NOT NULL,
    item text NOT NULL,
    count bigint NOT NULL,
    error text NOT NULL,
    first_at timestamp with time zone DEFAULT now() NOT NULL,
    last_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: tokens; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tokens (
    id integer NOT NULL,
    name text NOT NULL,
    user_id integer,
    digest text NOT NULL,
    scopes character varying[] NOT NULL,
    lab text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT ck_tokens_people_or_worker CHECK (((user_id IS NULL) = (scopes = '{worker}'::character varying[])))
);


--
-- Name: tokens_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.tokens_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: tokens_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.tokens_id_seq OWNED BY public.tokens.id;


--
-- Name: unsupported; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.unsupported (
    id integer NOT NULL,
    run_id integer NOT NULL,
    boot_id integer NOT NULL,
    arm character varying(32) NOT NULL,
    scenario text NOT NULL,
    setting text NOT NULL,
    metric text,
    reason text NOT NULL,
    CONSTRAINT ck_unsupported_arm CHECK (((arm)::text = ANY ((ARRAY['baseline'::character varying, 'candidate'::character varying])::text[])))
);


--
-- Name: unsupported_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.unsupported_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: unsupported_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.unsupported_id_seq OWNED BY public.unsupported.id;


--
-- Name: users; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.users (
    id integer NOT NULL,
    name text NOT NULL,
    role character varying(32) NOT NULL,
    password_hash text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_sign_in_at timestamp with time zone,
    disabled_at timestamp with time zone,
    CONSTRAINT ck_users_user_role CHECK (((role)::text = ANY ((ARRAY['viewer'::character varying, 'submitter'::character varying, 'maintainer'::character varying, 'admin'::character varying])::text[])))
);


--
-- Name: users_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.users_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: users_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.users_id_seq OWNED BY public.users.id;


--
-- Name: applies id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.applies ALTER COLUMN id SET DEFAULT nextval('public.applies_id_seq'::regclass);


--
-- Name: artifact_links id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.artifact_links ALTER COLUMN id SET DEFAULT nextval('public.artifact_links_id_seq'::regclass);


--
-- Name: boots id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.boots ALTER COLUMN id SET DEFAULT nextval('public.boots_id_seq'::regclass);


--
-- Name: browser_sessions id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.browser_sessions ALTER COLUMN id SET DEFAULT nextval('public.browser_sessions_id_seq'::regclass);


--
-- Name: builds id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.builds ALTER COLUMN id SET DEFAULT nextval('public.builds_id_seq'::regclass);


--
-- Name: device_checks id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.device_checks ALTER COLUMN id SET DEFAULT nextval('public.device_checks_id_seq'::regclass);


--
-- Name: findings id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.findings ALTER COLUMN id SET DEFAULT nextval('public.findings_id_seq'::regclass);


--
-- Name: health_changes id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.health_changes ALTER COLUMN id SET DEFAULT nextval('public.health_changes_id_seq'::regclass);


--
-- Name: lab_invites id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lab_invites ALTER COLUMN id SET DEFAULT nextval('public.lab_invites_id_seq'::regclass);


--
-- Name: lookups id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lookups ALTER COLUMN id SET DEFAULT nextval('public.lookups_id_seq'::regclass);


--
-- Name: runs id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs ALTER COLUMN id SET DEFAULT nextval('public.runs_id_seq'::regclass);


--
-- Name: submission_builds id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submission_builds ALTER COLUMN id SET DEFAULT nextval('public.submission_builds_id_seq'::regclass);


--
-- Name: submissions id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submissions ALTER COLUMN id SET DEFAULT nextval('public.submissions_id_seq'::regclass);


--
-- Name: tokens id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens ALTER COLUMN id SET DEFAULT nextval('public.tokens_id_seq'::regclass);


--
-- Name: unsupported id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.unsupported ALTER COLUMN id SET DEFAULT nextval('public.unsupported_id_seq'::regclass);


--
-- Name: users id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.users ALTER COLUMN id SET DEFAULT nextval('public.users_id_seq'::regclass);


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version VALUES ('0003');


--
-- Data for Name: applies; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.applies VALUES (1, 1, '{"url": "https://git.example.org/linux.git", "name": "lab-tree", "branch": "master", "summary": "the tests'' tree", "debian_suite": null, "debian_source": null}', 'gcc', '{"title": "workqueue: take fewer locks", "failure": null, "outcome": "passed", "patches": [], "baseline": {"tree": {"url": "https://git.example.org/linux.git", "name": "lab-tree", "branch": "master", "summary": "the tests'' tree", "debian_suite": null, "debian_source": null}, "bundle": null, "commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4", "release": "6.12.0", "tree_oid": "e4375d8e24466d9ba3ee5fdfa63f0c807a294d4a", "base_commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4"}, "candidate": {"tree": {"url": "https://git.example.org/linux.git", "name": "lab-tree", "branch": "master", "summary": "the tests'' tree", "debian_suite": null, "debian_source": null}, "bundle": {"kind": "bundle", "name": "series.bundle", "size": 108, "sha256": "9f0ae632f413bc1f2eaa22bfb346ccdf6d32902bab62b6aebc48dddff079a88f"}, "commit": "968d157e4e0f1afbf571430a08949766f2c10eae", "release": "6.12.0", "tree_oid": "bcb34d5b0ad63532a90defd058409665759abe4e", "base_commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4"}, "toolchain": "gcc 12.2.0", "checkpatch": [], "series_key": "workqueue: take fewer locks", "series_mbox": null, "checkpatch_skipped": ""}', 'finished', 'passed', NULL, 1, 1, 'test/1', NULL, NULL, NULL, '2026-11-25 15:26:46.348624+00', 0, '', 0, 0, '2026-11-25 15:26:46.284302+00', '2026-11-25 15:26:47.088915+00', '2026-11-25 15:26:47.422672+00');
INSERT INTO public.applies VALUES (2, 2, '{"url": "https://git.example.org/linux.git", "name": "lab-tree", "branch": "master", "summary": "the tests'' tree", "debian_suite": null, "debian_source": null}', 'gcc', '{"title": "workqueue: take fewer locks", "failure": null, "outcome": "passed", "patches": [], "baseline": {"tree": {"url": "https://git.example.org/linux.git", "name": "lab-tree", "branch": "master", "summary": "the tests'' tree", "debian_suite": null, "debian_source": null}, "bundle": null, "commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4", "release": "6.12.0", "tree_oid": "e4375d8e24466d9ba3ee5fdfa63f0c807a294d4a", "base_commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4"}, "candidate": {"tree": {"url": "https://git.example.org/linux.git", "name": "lab-tree", "branch": "master", "summary": "the tests'' tree", "debian_suite": null, "debian_source": null}, "bundle": {"kind": "bundle", "name": "series.bundle", "size": 108, "sha256": "9f0ae632f413bc1f2eaa22bfb346ccdf6d32902bab62b6aebc48dddff079a88f"}, "commit": "968d157e4e0f1afbf571430a08949766f2c10eae", "release": "6.12.0", "tree_oid": "bcb34d5b0ad63532a90defd058409665759abe4e", "base_commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4"}, "toolchain": "gcc 12.2.0", "checkpatch": [], "series_key": "workqueue: take fewer locks", "series_mbox": null, "checkpatch_skipped": ""}', 'finished', 'passed', NULL, 1, 5, 'test/1', NULL, NULL, NULL, '2026-11-25 15:26:51.331495+00', 0, '', 0, 0, '2026-11-25 15:26:51.274965+00', '2026-11-25 15:26:51.42391+00', '2026-11-25 15:26:51.886935+00');


--
-- Data for Name: artifact_links; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.artifact_links VALUES (1, '9f0ae632f413bc1f2eaa22bfb346ccdf6d32902bab62b6aebc48dddff079a88f', 1, NULL, NULL, 'bundle', 'series.bundle');
INSERT INTO public.artifact_links VALUES (2, '20b280a5e78bc54afc1a84b3c33123c7b8b7098610d472999dc7c5a10ba41724', NULL, 1, NULL, 'kernel', 'bzImage');
INSERT INTO public.artifact_links VALUES (3, '5091438d3ae09b9010132d26ed2b678885d60883e8f1bc896f61cd6e6929687e', NULL, 2, NULL, 'kernel', 'bzImage');
INSERT INTO public.artifact_links VALUES (4, '9f0ae632f413bc1f2eaa22bfb346ccdf6d32902bab62b6aebc48dddff079a88f', 2, NULL, NULL, 'bundle', 'series.bundle');


--
-- Data for Name: artifacts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.artifacts VALUES ('9f0ae632f413bc1f2eaa22bfb346ccdf6d32902bab62b6aebc48dddff079a88f', 108, '2026-11-25 15:26:47.298942+00');
INSERT INTO public.artifacts VALUES ('20b280a5e78bc54afc1a84b3c33123c7b8b7098610d472999dc7c5a10ba41724', 71, '2026-11-25 15:26:48.025814+00');
INSERT INTO public.artifacts VALUES ('5091438d3ae09b9010132d26ed2b678885d60883e8f1bc896f61cd6e6929687e', 71, '2026-11-25 15:26:48.366959+00');


--
-- Data for Name: block_attempts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.block_attempts VALUES (1, 0, 0, true, 'single-1', NULL, NULL, '2026-11-25 15:26:49.545832+00');
INSERT INTO public.block_attempts VALUES (1, 1, 0, true, 'single-1', NULL, NULL, '2026-11-25 15:26:50.039342+00');


--
-- Data for Name: boot_values; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.boot_values VALUES (1, 1, 'flush', '', 'locks_per_flush', 33);
INSERT INTO public.boot_values VALUES (1, 2, 'flush', '', 'locks_per_flush', 5);
INSERT INTO public.boot_values VALUES (1, 4, 'flush', '', 'locks_per_flush', 33);
INSERT INTO public.boot_values VALUES (1, 3, 'flush', '', 'locks_per_flush', 5);
INSERT INTO public.boot_values VALUES (1, 1, 'flush', '', 'throughput', 100);
INSERT INTO public.boot_values VALUES (1, 2, 'flush', '', 'throughput', 100);
INSERT INTO public.boot_values VALUES (1, 4, 'flush', '', 'throughput', 101);
INSERT INTO public.boot_values VALUES (1, 3, 'flush', '', 'throughput', 101);


--
-- Data for Name: boots; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.boots VALUES (3, 1, 1, 0, 'candidate', 0, 'single-1', 4, 'finished', 'passed', NULL, true, 'boot 1 1 0 0', 'token-1-0-0', '17e77b851bfa638ec74af9fc5237c2bba6e0d723', '6.12.0-wqlab', 'console=ttyS0', '{"l3": [0, 0, 1, 1], "core": [0, 1, 2, 3], "cpus": 4, "node": [0, 0, 0, 0], "online": null, "cluster": null, "package": [0, 0, 0, 0], "capacity": null, "last_level": "L3"}', '{}', '{"flush": "fio job"}', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', 9, 7, 3, 1, 0, false, NULL);
INSERT INTO public.boots VALUES (4, 1, 1, 1, 'baseline', 0, 'single-1', 4, 'finished', 'passed', NULL, true, 'boot 1 1 1 0', 'token-1-1-0', 'b9fae78c4e55f3236bd034ab4949c2f4adeda8f1', '6.12.0-wqlab', 'console=ttyS0', '{"l3": [0, 0, 1, 1], "core": [0, 1, 2, 3], "cpus": 4, "node": [0, 0, 0, 0], "online": null, "cluster": null, "package": [0, 0, 0, 0], "capacity": null, "last_level": "L3"}', '{}', '{"flush": "fio job"}', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', 9, 7, 3, 1, 0, false, NULL);
INSERT INTO public.boots VALUES (1, 1, 0, 0, 'baseline', 0, 'single-1', 4, 'finished', 'passed', NULL, true, 'boot 1 0 0 0', 'token-0-0-0', 'b9fae78c4e55f3236bd034ab4949c2f4adeda8f1', '6.12.0-wqlab', 'console=ttyS0', '{"l3": [0, 0, 1, 1], "core": [0, 1, 2, 3], "cpus": 4, "node": [0, 0, 0, 0], "online": null, "cluster": null, "package": [0, 0, 0, 0], "capacity": null, "last_level": "L3"}', '{}', '{"flush": "fio job"}', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', 9, 7, 3, 1, 0, false, NULL);
INSERT INTO public.boots VALUES (2, 1, 0, 1, 'candidate', 0, 'single-1', 4, 'finished', 'passed', NULL, true, 'boot 1 0 1 0', 'token-0-1-0', '17e77b851bfa638ec74af9fc5237c2bba6e0d723', '6.12.0-wqlab', 'console=ttyS0', '{"l3": [0, 0, 1, 1], "core": [0, 1, 2, 3], "cpus": 4, "node": [0, 0, 0, 0], "online": null, "cluster": null, "package": [0, 0, 0, 0], "capacity": null, "last_level": "L3"}', '{}', '{"flush": "fio job"}', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', 9, 7, 3, 1, 0, false, NULL);


--
-- Data for Name: browser_sessions; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: builds; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.builds VALUES (2, 'dd80659fc25e8d1f845a37463f2d647940300f533cab8935fa8f4efbdbdfbfbe', '{"tree": {"url": "https://git.example.org/linux.git", "name": "lab-tree", "branch": "master", "summary": "the tests'' tree", "debian_suite": null, "debian_source": null}, "bundle": {"kind": "bundle", "name": "series.bundle", "size": 108, "sha256": "9f0ae632f413bc1f2eaa22bfb346ccdf6d32902bab62b6aebc48dddff079a88f"}, "commit": "968d157e4e0f1afbf571430a08949766f2c10eae", "release": "6.12.0", "tree_oid": "bcb34d5b0ad63532a90defd058409665759abe4e", "base_commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4"}', '{"name": "measure", "figures": true, "modules": [], "summary": "small kernel", "fragments": ["base"], "toolchain": "gcc", "base_config": "tinyconfig", "arch_fragments": {}, "emulated_fragments": []}', 'x86_64', true, '{"base": "CONFIG_SMP=y\n"}', '{}', 'gcc 12.2.0', false, '{"ccache": {}, "reused": false, "failure": null, "outcome": "passed", "release": "6.12.0-wqlab", "compiler": "", "warnings": [], "artifacts": [{"kind": "kernel", "name": "bzImage", "size": 71, "sha256": "5091438d3ae09b9010132d26ed2b678885d60883e8f1bc896f61cd6e6929687e"}], "duration_s": 0.0, "reproducer": "", "build_id_gnu": "17e77b851bfa638ec74af9fc5237c2bba6e0d723", "unmet_options": [], "failed_modules": {}}', 'finished', 'passed', NULL, 1, 3, 'test/1', NULL, NULL, NULL, '2026-11-25 15:26:47.628729+00', 0, '', 0, 0, '2026-11-25 15:26:47.471714+00', '2026-11-25 15:26:48.20522+00', '2026-11-25 15:26:48.439555+00');
INSERT INTO public.builds VALUES (1, '990c17bb4a5fdf2e901eef792755a9d0d1152ec80209ad40c59b34be0dcdb41d', '{"tree": {"url": "https://git.example.org/linux.git", "name": "lab-tree", "branch": "master", "summary": "the tests'' tree", "debian_suite": null, "debian_source": null}, "bundle": null, "commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4", "release": "6.12.0", "tree_oid": "e4375d8e24466d9ba3ee5fdfa63f0c807a294d4a", "base_commit": "1405df66cbe219b0bf6355bc3d60361a8376b6b4"}', '{"name": "measure", "figures": true, "modules": [], "summary": "small kernel", "fragments": ["base"], "toolchain": "gcc", "base_config": "tinyconfig", "arch_fragments": {}, "emulated_fragments": []}', 'x86_64', true, '{"base": "CONFIG_SMP=y\n"}', '{}', 'gcc 12.2.0', true, '{"ccache": {}, "reused": false, "failure": null, "outcome": "passed", "release": "6.12.0-wqlab", "compiler": "", "warnings": [], "artifacts": [{"kind": "kernel", "name": "bzImage", "size": 71, "sha256": "20b280a5e78bc54afc1a84b3c33123c7b8b7098610d472999dc7c5a10ba41724"}], "duration_s": 0.0, "reproducer": "", "build_id_gnu": "b9fae78c4e55f3236bd034ab4949c2f4adeda8f1", "unmet_options": [], "failed_modules": {}}', 'finished', 'passed', NULL, 1, 2, 'test/1', NULL, NULL, NULL, '2026-11-25 15:26:47.551751+00', 0, '', 0, 0, '2026-11-25 15:26:47.471714+00', '2026-11-25 15:26:47.899408+00', '2026-11-25 15:26:48.124686+00');


--
-- Data for Name: comparisons; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.comparisons VALUES (1, 0, 'kernel', 'primary', 'improvement', '{"p": null, "ci95": null, "plan": "locks", "role": "primary", "unit": "locks", "delta": 0.0, "exact": true, "scale": "difference", "effect": -28.0, "kernel": null, "metric": "locks_per_flush", "reason": "exactly 33 and 5 in every boot (2 of each)", "setting": "", "verdict": "improvement", "baseline": {"n": 2, "mean": 33.0, "stddev": 0.0}, "evidence": "mechanism", "question": "kernel", "scenario": "flush", "candidate": {"n": 2, "mean": 5.0, "stddev": 0.0}, "direction": "lower_is_better", "reference": "baseline", "p_adjusted": null, "p_signflip": null, "device_type": "single", "effect_unit": "locks", "blocks_needed": null, "blocks_discarded": 0}');
INSERT INTO public.comparisons VALUES (1, 1, 'kernel', 'secondary', 'no_evidence', '{"p": null, "ci95": null, "plan": "locks", "role": "secondary", "unit": "MB/s", "delta": null, "exact": false, "scale": "ratio", "effect": null, "kernel": null, "metric": "throughput", "reason": "value only: the clock of an emulated device is not hardware", "setting": "", "verdict": "no_evidence", "baseline": {"n": 2, "mean": 100.5, "stddev": null}, "evidence": "none", "question": "kernel", "scenario": "flush", "candidate": {"n": 2, "mean": 100.5, "stddev": null}, "direction": "higher_is_better", "reference": "baseline", "p_adjusted": null, "p_signflip": null, "device_type": "single", "effect_unit": "%", "blocks_needed": null, "blocks_discarded": 0}');


--
-- Data for Name: console_chunks; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: device_checks; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: devices; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.devices VALUES ('device-1', 'device', 'local', '{"lab": "local", "arch": "x86_64", "boot": {"rootfs": "/sys/firmware/initrd", "power_off_s": 0.0, "console_speed": 115200, "console_device": "ttyS0", "golden_timeout_s": 120, "kernel_arguments": "wqlab.ip=10.0.2.15/24 tsc=reliable no_timer_check nokaslr norandmaps mitigations=off", "variant_timeout_s": 120}, "lava": null, "name": "device-1", "power": null, "backend": "labgrid", "scratch": [], "emulated": true, "topology": {"sockets": 1, "clusters": [], "numbering": "contiguous", "numa_nodes": 1, "cores_per_l3": 2, "l3_per_socket": 2, "threads_per_core": 1}, "conditions": {"smt": null, "boost": null, "cool_s": 300, "governor": null, "required": [], "mitigations": null, "irq_affinity": null, "start_below_c": null}, "device_type": "device"}', 'good', '', NULL, NULL, NULL, false, NULL, '2026-11-25 15:26:46.14569+00', 'labgrid');
INSERT INTO public.devices VALUES ('device-2', 'device', 'local', '{"lab": "local", "arch": "x86_64", "boot": {"rootfs": "/sys/firmware/initrd", "power_off_s": 0.0, "console_speed": 115200, "console_device": "ttyS0", "golden_timeout_s": 120, "kernel_arguments": "wqlab.ip=10.0.2.15/24 tsc=reliable no_timer_check nokaslr norandmaps mitigations=off", "variant_timeout_s": 120}, "lava": null, "name": "device-2", "power": null, "backend": "labgrid", "scratch": [], "emulated": true, "topology": {"sockets": 1, "clusters": [], "numbering": "contiguous", "numa_nodes": 1, "cores_per_l3": 2, "l3_per_socket": 2, "threads_per_core": 1}, "conditions": {"smt": null, "boost": null, "cool_s": 300, "governor": null, "required": [], "mitigations": null, "irq_affinity": null, "start_below_c": null}, "device_type": "device"}', 'good', '', NULL, NULL, NULL, false, NULL, '2026-11-25 15:26:46.14569+00', 'labgrid');
INSERT INTO public.devices VALUES ('single-1', 'single', 'local', '{"lab": "local", "arch": "x86_64", "boot": {"rootfs": "/sys/firmware/initrd", "power_off_s": 0.0, "console_speed": 115200, "console_device": "ttyS0", "golden_timeout_s": 120, "kernel_arguments": "wqlab.ip=10.0.2.15/24 tsc=reliable no_timer_check nokaslr norandmaps mitigations=off", "variant_timeout_s": 120}, "lava": null, "name": "single-1", "power": null, "backend": "labgrid", "scratch": [], "emulated": true, "topology": {"sockets": 1, "clusters": [], "numbering": "contiguous", "numa_nodes": 1, "cores_per_l3": 2, "l3_per_socket": 1, "threads_per_core": 1}, "conditions": {"smt": null, "boost": null, "cool_s": 300, "governor": null, "required": [], "mitigations": null, "irq_affinity": null, "start_below_c": null}, "device_type": "single"}', 'good', '', NULL, NULL, NULL, true, NULL, '2026-11-25 15:26:46.14569+00', 'labgrid');


--
-- Data for Name: events; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.events VALUES (1, 1, '2026-11-25 15:26:46.335543+00', 'submission_state', NULL, NULL, NULL, '{"state": "applying"}');
INSERT INTO public.events VALUES (1, 2, '2026-11-25 15:26:47.107033+00', 'apply_state', NULL, NULL, NULL, '{"state": "running", "holder": "test/1"}');
INSERT INTO public.events VALUES (1, 3, '2026-11-25 15:26:47.447903+00', 'apply_state', NULL, NULL, NULL, '{"state": "finished", "outcome": "passed"}');
INSERT INTO public.events VALUES (1, 4, '2026-11-25 15:26:47.605344+00', 'build_state', 1, NULL, NULL, '{"arm": "baseline", "state": "queued"}');
INSERT INTO public.events VALUES (1, 5, '2026-11-25 15:26:47.65905+00', 'build_state', 2, NULL, NULL, '{"arm": "candidate", "state": "queued"}');
INSERT INTO public.events VALUES (1, 6, '2026-11-25 15:26:47.721499+00', 'submission_state', NULL, NULL, NULL, '{"state": "building"}');
INSERT INTO public.events VALUES (1, 7, '2026-11-25 15:26:47.924536+00', 'build_state', 1, NULL, NULL, '{"state": "running", "holder": "test/1"}');
INSERT INTO public.events VALUES (1, 8, '2026-11-25 15:26:48.135558+00', 'build_state', 1, NULL, NULL, '{"state": "finished", "outcome": "passed"}');
INSERT INTO public.events VALUES (1, 9, '2026-11-25 15:26:48.217885+00', 'build_state', 2, NULL, NULL, '{"state": "running", "holder": "test/1"}');
INSERT INTO public.events VALUES (1, 10, '2026-11-25 15:26:48.451038+00', 'build_state', 2, NULL, NULL, '{"state": "finished", "outcome": "passed"}');
INSERT INTO public.events VALUES (1, 11, '2026-11-25 15:26:48.554278+00', 'run_state', NULL, 1, NULL, '{"state": "queued"}');
INSERT INTO public.events VALUES (1, 12, '2026-11-25 15:26:48.591633+00', 'submission_state', NULL, NULL, NULL, '{"state": "running"}');
INSERT INTO public.events VALUES (1, 13, '2026-11-25 15:26:48.771355+00', 'run_state', NULL, 1, NULL, '{"state": "queued", "device": "single-1"}');
INSERT INTO public.events VALUES (1, 14, '2026-11-25 15:26:49.059005+00', 'run_state', NULL, 1, NULL, '{"state": "running", "device": "single-1", "holder": "test/1", "attempt": 1}');
INSERT INTO public.events VALUES (1, 15, '2026-11-25 15:26:49.227248+00', 'boot_state', NULL, 1, 1, '{"arm": "baseline", "block": 0, "state": "booting", "attempt": 0, "position": 0}');
INSERT INTO public.events VALUES (1, 16, '2026-11-25 15:26:49.27936+00', 'boot_state', NULL, 1, 1, '{"arm": "baseline", "block": 0, "state": "measuring", "attempt": 0, "position": 0}');
INSERT INTO public.events VALUES (1, 17, '2026-11-25 15:26:49.312825+00', 'samples', NULL, 1, 1, '{"count": 4, "setting": "", "scenario": "flush"}');
INSERT INTO public.events VALUES (1, 18, '2026-11-25 15:26:49.339235+00', 'boot_state', NULL, 1, 1, '{"arm": "baseline", "block": 0, "state": "finished", "attempt": 0, "outcome": "passed", "position": 0}');
INSERT INTO public.events VALUES (1, 19, '2026-11-25 15:26:49.41847+00', 'boot_state', NULL, 1, 2, '{"arm": "candidate", "block": 0, "state": "booting", "attempt": 0, "position": 1}');
INSERT INTO public.events VALUES (1, 20, '2026-11-25 15:26:49.442521+00', 'boot_state', NULL, 1, 2, '{"arm": "candidate", "block": 0, "state": "measuring", "attempt": 0, "position": 1}');
INSERT INTO public.events VALUES (1, 21, '2026-11-25 15:26:49.476391+00', 'samples', NULL, 1, 2, '{"count": 4, "setting": "", "scenario": "flush"}');
INSERT INTO public.events VALUES (1, 22, '2026-11-25 15:26:49.498643+00', 'boot_state', NULL, 1, 2, '{"arm": "candidate", "block": 0, "state": "finished", "attempt": 0, "outcome": "passed", "position": 1}');
INSERT INTO public.events VALUES (1, 23, '2026-11-25 15:26:49.625019+00', 'block_finished', NULL, 1, NULL, '{"block": 0, "attempt": 0}');
INSERT INTO public.events VALUES (1, 24, '2026-11-25 15:26:49.734797+00', 'boot_state', NULL, 1, 3, '{"arm": "candidate", "block": 1, "state": "booting", "attempt": 0, "position": 0}');
INSERT INTO public.events VALUES (1, 25, '2026-11-25 15:26:49.768068+00', 'boot_state', NULL, 1, 3, '{"arm": "candidate", "block": 1, "state": "measuring", "attempt": 0, "position": 0}');
INSERT INTO public.events VALUES (1, 26, '2026-11-25 15:26:49.801272+00', 'samples', NULL, 1, 3, '{"count": 4, "setting": "", "scenario": "flush"}');
INSERT INTO public.events VALUES (1, 27, '2026-11-25 15:26:49.817736+00', 'boot_state', NULL, 1, 3, '{"arm": "candidate", "block": 1, "state": "finished", "attempt": 0, "outcome": "passed", "position": 0}');
INSERT INTO public.events VALUES (1, 28, '2026-11-25 15:26:49.89664+00', 'boot_state', NULL, 1, 4, '{"arm": "baseline", "block": 1, "state": "booting", "attempt": 0, "position": 1}');
INSERT INTO public.events VALUES (1, 29, '2026-11-25 15:26:49.925498+00', 'boot_state', NULL, 1, 4, '{"arm": "baseline", "block": 1, "state": "measuring", "attempt": 0, "position": 1}');
INSERT INTO public.events VALUES (1, 30, '2026-11-25 15:26:49.956159+00', 'samples', NULL, 1, 4, '{"count": 4, "setting": "", "scenario": "flush"}');
INSERT INTO public.events VALUES (1, 31, '2026-11-25 15:26:49.998448+00', 'boot_state', NULL, 1, 4, '{"arm": "baseline", "block": 1, "state": "finished", "attempt": 0, "outcome": "passed", "position": 1}');
INSERT INTO public.events VALUES (1, 32, '2026-11-25 15:26:50.100505+00', 'block_finished', NULL, 1, NULL, '{"block": 1, "attempt": 0}');
INSERT INTO public.events VALUES (1, 33, '2026-11-25 15:26:50.275108+00', 'run_state', NULL, 1, NULL, '{"state": "finished", "device": "single-1", "outcome": "passed"}');
INSERT INTO public.events VALUES (1, 34, '2026-11-25 15:26:50.328078+00', 'submission_state', NULL, NULL, NULL, '{"state": "comparing"}');
INSERT INTO public.events VALUES (1, 35, '2026-11-25 15:26:50.861159+00', 'report_ready', NULL, NULL, NULL, '{}');
INSERT INTO public.events VALUES (1, 36, '2026-11-25 15:26:50.871743+00', 'submission_state', NULL, NULL, NULL, '{"state": "finished", "outcome": "passed", "exit_code": 0}');
INSERT INTO public.events VALUES (2, 1, '2026-11-25 15:26:51.303433+00', 'submission_state', NULL, NULL, NULL, '{"state": "applying"}');
INSERT INTO public.events VALUES (2, 2, '2026-11-25 15:26:51.444127+00', 'apply_state', NULL, NULL, NULL, '{"state": "running", "holder": "test/1"}');
INSERT INTO public.events VALUES (2, 3, '2026-11-25 15:26:52.009665+00', 'apply_state', NULL, NULL, NULL, '{"state": "finished", "outcome": "passed"}');
INSERT INTO public.events VALUES (2, 4, '2026-11-25 15:26:52.595289+00', 'build_state', 1, NULL, NULL, '{"arm": "baseline", "state": "finished"}');
INSERT INTO public.events VALUES (2, 5, '2026-11-25 15:26:52.651931+00', 'build_state', 2, NULL, NULL, '{"arm": "candidate", "state": "finished"}');
INSERT INTO public.events VALUES (2, 6, '2026-11-25 15:26:52.690621+00', 'run_state', NULL, 2, NULL, '{"state": "queued"}');
INSERT INTO public.events VALUES (2, 7, '2026-11-25 15:26:52.725032+00', 'submission_state', NULL, NULL, NULL, '{"state": "building"}');
INSERT INTO public.events VALUES (2, 8, '2026-11-25 15:26:52.760479+00', 'submission_state', NULL, NULL, NULL, '{"state": "running"}');
INSERT INTO public.events VALUES (2, 9, '2026-11-25 15:26:52.873688+00', 'run_state', NULL, 2, NULL, '{"state": "queued", "device": "single-1"}');
INSERT INTO public.events VALUES (2, 10, '2026-11-25 15:26:53.075215+00', 'run_state', NULL, 2, NULL, '{"state": "running", "device": "single-1", "holder": "test/1", "attempt": 1}');


--
-- Data for Name: findings; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: health_changes; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: kept_reports; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.kept_reports VALUES (1, '{"submission":{"id":1,"title":"workqueue: take fewer locks","author":"","version":null,"series_key":"workqueue: take fewer locks","tree":"lab-tree","owner":"dev","priority":50,"state":"finished","outcome":"passed","failure":null,"verdicts":{"improvement":1},"retry_of":null,"targets":[{"run_id":1,"plan":"locks","device_type":"single","emulated":true,"device":"single-1","state":"finished","outcome":"passed","verdict":"improvement","headline":"locks_per_flush falls from 33 to 5, the same in every boot (n=2)","done_boots":4,"total_boots":4}],"done_boots":4,"total_boots":4,"created_at":"2026-11-25T15:26:46.284302Z","finished_at":"2026-11-25T15:26:50.657454Z","request":{"series":{"git":{"url":"https://git.example.org/dev/linux.git","ref":"flush-locks","base":null},"mbox":null},"tree":"lab-tree","targets":[{"plan":"locks","device_type":"single","scenarios":null,"settings":null,"parameters":{}}],"blocks":2,"priority":50,"recipe":null,"backend":null},"apply":{"state":"finished","outcome":"passed","failure":null,"base_commit":"1405df66cbe219b0bf6355bc3d60361a8376b6b4","release":"6.12.0","patches":[],"checkpatch":[],"checkpatch_skipped":"","series_mbox":null},"builds":[{"id":1,"key":"990c17bb4a5fdf2e901eef792755a9d0d1152ec80209ad40c59b34be0dcdb41d","arm":"baseline","tree":"lab-tree","origin":"https://git.example.org/linux.git","base_commit":"1405df66cbe219b0bf6355bc3d60361a8376b6b4","tree_oid":"e4375d8e24466d9ba3ee5fdfa63f0c807a294d4a","recipe":"measure","arch":"x86_64","state":"finished","outcome":"passed","failure":null,"reused":false,"build_id_gnu":"b9fae78c4e55f3236bd034ab4949c2f4adeda8f1","release":"6.12.0-wqlab","compiler":"","reproducer":"","duration_s":0.0,"new_warnings":[],"artifacts":[{"sha256":"20b280a5e78bc54afc1a84b3c33123c7b8b7098610d472999dc7c5a10ba41724","size":71,"kind":"kernel","name":"bzImage"}],"progress":""},{"id":2,"key":"dd80659fc25e8d1f845a37463f2d647940300f533cab8935fa8f4efbdbdfbfbe","arm":"candidate","tree":"lab-tree","origin":"https://git.example.org/linux.git","base_commit":"1405df66cbe219b0bf6355bc3d60361a8376b6b4","tree_oid":"bcb34d5b0ad63532a90defd058409665759abe4e","recipe":"measure","arch":"x86_64","state":"finished","outcome":"passed","failure":null,"reused":false,"build_id_gnu":"17e77b851bfa638ec74af9fc5237c2bba6e0d723","release":"6.12.0-wqlab","compiler":"","reproducer":"","duration_s":0.0,"new_warnings":[],"artifacts":[{"sha256":"5091438d3ae09b9010132d26ed2b678885d60883e8f1bc896f61cd6e6929687e","size":71,"kind":"kernel","name":"bzImage"}],"progress":""}],"runs":[{"id":1,"submission_id":1,"purpose":"measure","plan":"locks","device_type":"single","device":"single-1","state":"finished","outcome":"passed","failure":null,"attempt":1,"blocks_planned":2,"blocks_completed":2,"progress":"","queue_position":null,"created_at":"2026-11-25T15:26:46.284302Z","started_at":"2026-11-25T15:26:49.013526Z","finished_at":"2026-11-25T15:26:50.259860Z","boots":[{"id":1,"run_id":1,"block":0,"position":0,"arm":"baseline","attempt":0,"device":"single-1","state":"finished","outcome":"passed","failure":null,"valid":true,"kernel_boot_id":"boot 1 0 0 0","token":"token-0-0-0","build_id_gnu":"b9fae78c4e55f3236bd034ab4949c2f4adeda8f1","release":"6.12.0-wqlab","cmdline":"console=ttyS0","topology":{"cpus":4,"online":null,"core":[0,1,2,3],"l3":[0,0,1,1],"last_level":"L3","node":[0,0,0,0],"package":[0,0,0,0],"cluster":null,"capacity":null},"environment":{},"started_at":"2026-01-01T00:00:00Z","finished_at":"2026-01-01T00:00:00Z","golden_s":9.0,"kexec_s":7.0,"workload_s":3.0,"overhead_s":1.0,"console_bytes":0,"console_truncated":false},{"id":2,"run_id":1,"block":0,"position":1,"arm":"candidate","attempt":0,"device":"single-1","state":"finished","outcome":"passed","failure":null,"valid":true,"kernel_boot_id":"boot 1 0 1 0","token":"token-0-1-0","build_id_gnu":"17e77b851bfa638ec74af9fc5237c2bba6e0d723","release":"6.12.0-wqlab","cmdline":"console=ttyS0","topology":{"cpus":4,"online":null,"core":[0,1,2,3],"l3":[0,0,1,1],"last_level":"L3","node":[0,0,0,0],"package":[0,0,0,0],"cluster":null,"capacity":null},"environment":{},"started_at":"2026-01-01T00:00:00Z","finished_at":"2026-01-01T00:00:00Z","golden_s":9.0,"kexec_s":7.0,"workload_s":3.0,"overhead_s":1.0,"console_bytes":0,"console_truncated":false},{"id":3,"run_id":1,"block":1,"position":0,"arm":"candidate","attempt":0,"device":"single-1","state":"finished","outcome":"passed","failure":null,"valid":true,"kernel_boot_id":"boot 1 1 0 0","token":"token-1-0-0","build_id_gnu":"17e77b851bfa638ec74af9fc5237c2bba6e0d723","release":"6.12.0-wqlab","cmdline":"console=ttyS0","topology":{"cpus":4,"online":null,"core":[0,1,2,3],"l3":[0,0,1,1],"last_level":"L3","node":[0,0,0,0],"package":[0,0,0,0],"cluster":null,"capacity":null},"environment":{},"started_at":"2026-01-01T00:00:00Z","finished_at":"2026-01-01T00:00:00Z","golden_s":9.0,"kexec_s":7.0,"workload_s":3.0,"overhead_s":1.0,"console_bytes":0,"console_truncated":false},{"id":4,"run_id":1,"block":1,"position":1,"arm":"baseline","attempt":0,"device":"single-1","state":"finished","outcome":"passed","failure":null,"valid":true,"kernel_boot_id":"boot 1 1 1 0","token":"token-1-1-0","build_id_gnu":"b9fae78c4e55f3236bd034ab4949c2f4adeda8f1","release":"6.12.0-wqlab","cmdline":"console=ttyS0","topology":{"cpus":4,"online":null,"core":[0,1,2,3],"l3":[0,0,1,1],"last_level":"L3","node":[0,0,0,0],"package":[0,0,0,0],"cluster":null,"capacity":null},"environment":{},"started_at":"2026-01-01T00:00:00Z","finished_at":"2026-01-01T00:00:00Z","golden_s":9.0,"kexec_s":7.0,"workload_s":3.0,"overhead_s":1.0,"console_bytes":0,"console_truncated":false}],"findings":[]}],"eta":{"finish_at":"2026-11-25T15:26:50.657454Z","what":"finished","done_boots":4,"total_boots":4},"exit_code":0},"generated_at":"2026-11-25T15:26:50.810924Z","lab_url":"http://lab.test","summary":"improves single (emulated)","targets":[{"run_id":1,"plan":{"name":"locks","summary":"counts locks","script":"run.sh","files_of":null,"parser":"locks","modules":[],"scenarios":[{"name":"flush","summary":"flushes","parameters":{}}],"axes":[],"reference_setting":"","hardware":{"parameters":{},"repetitions":{"warmup":1,"untraced":1,"traced":1},"scenarios":null,"settings":[""],"blocks":2,"measure_timeout_s":300},"emulated":{"parameters":{},"repetitions":{"warmup":1,"untraced":1,"traced":1},"scenarios":null,"settings":[""],"blocks":2,"measure_timeout_s":300},"metrics":[{"name":"locks_per_flush","summary":"locks","unit":"locks","scale":"difference","direction":"lower_is_better","class":"mechanism","taken_from":"traced","role_hardware":"explanatory","role_emulated":"primary","delta":null},{"name":"throughput","summary":"speed","unit":"MB/s","scale":"ratio","direction":"higher_is_better","class":"performance","taken_from":"untraced","role_hardware":"primary","role_emulated":"secondary","delta":null}],"references":[],"tradeoff":null,"curve":null,"checks_health":false},"device_type":"single","device_summary":"one device","emulated":true,"declared_topology":{"sockets":1,"l3_per_socket":1,"cores_per_l3":2,"threads_per_core":1,"numa_nodes":1,"numbering":"contiguous","clusters":[]},"outcome":"passed","failure":null,"verdict":"improvement","headline":"locks_per_flush falls from 33 to 5, the same in every boot (n=2)","reasons":["locks_per_flush: improvement: exactly 33 and 5 in every boot (2 of each)"],"comparisons":[{"plan":"locks","device_type":"single","scenario":"flush","setting":"","question":"kernel","reference":"baseline","kernel":null,"metric":"locks_per_flush","unit":"locks","scale":"difference","direction":"lower_is_better","role":"primary","evidence":"mechanism","baseline":{"mean":33.0,"stddev":0.0,"n":2},"candidate":{"mean":5.0,"stddev":0.0,"n":2},"effect":-28.0,"ci95":null,"p":null,"p_adjusted":null,"p_signflip":null,"delta":0.0,"exact":true,"verdict":"improvement","reason":"exactly 33 and 5 in every boot (2 of each)","blocks_needed":null,"blocks_discarded":0,"effect_unit":"locks"},{"plan":"locks","device_type":"single","scenario":"flush","setting":"","question":"kernel","reference":"baseline","kernel":null,"metric":"throughput","unit":"MB/s","scale":"ratio","direction":"higher_is_better","role":"secondary","evidence":"none","baseline":{"mean":100.5,"stddev":null,"n":2},"candidate":{"mean":100.5,"stddev":null,"n":2},"effect":null,"ci95":null,"p":null,"p_adjusted":null,"p_signflip":null,"delta":null,"exact":false,"verdict":"no_evidence","reason":"value only: the clock of an emulated device is not hardware","blocks_needed":null,"blocks_discarded":0,"effect_unit":"%"}],"environment":{"device":"single-1","topology":{"cpus":4,"online":null,"core":[0,1,2,3],"l3":[0,0,1,1],"last_level":"L3","node":[0,0,0,0],"package":[0,0,0,0],"cluster":null,"capacity":null},"cmdline":{"baseline":"console=ttyS0","candidate":"console=ttyS0"},"release":{"baseline":"6.12.0-wqlab","candidate":"6.12.0-wqlab"},"build_id_gnu":{"baseline":"b9fae78c4e55f3236bd034ab4949c2f4adeda8f1","candidate":"17e77b851bfa638ec74af9fc5237c2bba6e0d723"},"facts":{},"commands":{"flush":"fio job"}},"values":[{"arm":"baseline","block":0,"scenario":"flush","setting":"","metric":"locks_per_flush","value":33.0},{"arm":"baseline","block":1,"scenario":"flush","setting":"","metric":"locks_per_flush","value":33.0},{"arm":"candidate","block":0,"scenario":"flush","setting":"","metric":"locks_per_flush","value":5.0},{"arm":"candidate","block":1,"scenario":"flush","setting":"","metric":"locks_per_flush","value":5.0},{"arm":"baseline","block":0,"scenario":"flush","setting":"","metric":"throughput","value":100.0},{"arm":"baseline","block":1,"scenario":"flush","setting":"","metric":"throughput","value":101.0},{"arm":"candidate","block":0,"scenario":"flush","setting":"","metric":"throughput","value":100.0},{"arm":"candidate","block":1,"scenario":"flush","setting":"","metric":"throughput","value":101.0}],"curves":[],"workqueues":[],"references":[],"unsupported":[],"findings":[],"blocks_planned":2,"blocks_completed":2,"discarded":{},"overhead_s":1.0}],"attempts":[],"config_diff":[],"config_sha256":"","method":"n is the number of boots. Each boot gives one value, the median of its repetitions without warm-up repetitions; the section of each device says how many there were. Timed figures need a warm-up repetition; counts, the only evidence from an emulated device, need none. Baseline and candidate boot on one device in alternating, shuffled blocks, each from the same golden system by kexec. A difference is significant if a paired t test (adjusted over its family) and an exact sign-flip test both reach p <= .05; figures that are the same whole number in every boot are counts and need no test."}', '2026-11-25 15:26:50.348646+00');


--
-- Data for Name: lab_hosts; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: lab_invites; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: labs; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: leases; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.leases VALUES ('single-1', 2, 6, 'test/1', '2026-11-25 15:27:53.050932+00', '2026-11-25 15:26:52.810866+00');


--
-- Data for Name: lookups; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: run_attempts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run_attempts VALUES (1, 1, 'single-1', 4, 'test/1', 'passed', NULL, '2026-11-25 15:26:48.940413+00', '2026-11-25 15:26:50.195642+00');
INSERT INTO public.run_attempts VALUES (2, 1, 'single-1', 6, 'test/1', NULL, NULL, '2026-11-25 15:26:53.002906+00', NULL);


--
-- Data for Name: runs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.runs VALUES (1, 1, 'measure', 0, 'dev', 50, 'single', '{"arch": "x86_64", "boot": {"rootfs": "/sys/firmware/initrd", "power_off_s": 0.0, "console_speed": 115200, "console_device": "ttyS0", "golden_timeout_s": 120, "kernel_arguments": "", "variant_timeout_s": 120}, "lava": null, "name": "single", "units": [{"lab": "local", "name": "single-1", "power": null, "backend": "labgrid", "scratch": []}], "recipe": "measure", "tested": true, "summary": "one device", "topology": {"sockets": 1, "clusters": [], "numbering": "contiguous", "numa_nodes": 1, "cores_per_l3": 2, "l3_per_socket": 1, "threads_per_core": 1}, "emulation": {"cpu_model": "Skylake-Server", "memory_mib": 512, "kernel_arguments": "tsc=reliable no_timer_check nokaslr norandmaps mitigations=off"}, "conditions": {"smt": null, "boost": null, "cool_s": 300, "governor": null, "required": [], "mitigations": null, "irq_affinity": null, "start_below_c": null}, "noise_plan": null, "health_check": "health-check", "health_check_interval_h": 24}', 'locks', '{"axes": [], "name": "locks", "curve": null, "parser": "locks", "script": "run.sh", "metrics": [{"name": "locks_per_flush", "unit": "locks", "class": "mechanism", "delta": null, "scale": "difference", "summary": "locks", "direction": "lower_is_better", "taken_from": "traced", "role_emulated": "primary", "role_hardware": "explanatory"}, {"name": "throughput", "unit": "MB/s", "class": "performance", "delta": null, "scale": "ratio", "summary": "speed", "direction": "higher_is_better", "taken_from": "untraced", "role_emulated": "secondary", "role_hardware": "primary"}], "modules": [], "summary": "counts locks", "emulated": {"blocks": 2, "settings": [""], "scenarios": null, "parameters": {}, "repetitions": {"traced": 1, "warmup": 1, "untraced": 1}, "measure_timeout_s": 300}, "files_of": null, "hardware": {"blocks": 2, "settings": [""], "scenarios": null, "parameters": {}, "repetitions": {"traced": 1, "warmup": 1, "untraced": 1}, "measure_timeout_s": 300}, "tradeoff": null, "scenarios": [{"name": "flush", "summary": "flushes", "parameters": {}}], "references": [], "checks_health": false, "reference_setting": ""}', '{"blocks": 2, "settings": [""], "scenarios": null, "parameters": {}, "repetitions": {"traced": 1, "warmup": 1, "untraced": 1}, "measure_timeout_s": 300}', '{"run.sh": "#!/bin/sh\n"}', '{"name": "measure", "figures": true, "modules": [], "summary": "small kernel", "fragments": ["base"], "toolchain": "gcc", "base_config": "tinyconfig", "arch_fragments": {}, "emulated_fragments": []}', '{"base": "CONFIG_SMP=y\n"}', '{}', 1, 2, 28543523168108, '[["baseline", "candidate"], ["candidate", "baseline"]]', NULL, 'single-1', '[]', 4, '2026-11-25 15:26:50.535089+00', 'improvement', 'locks_per_flush falls from 33 to 5, the same in every boot (n=2)', 'finished', 'passed', NULL, 1, 4, 'test/1', NULL, NULL, NULL, '2026-11-25 15:26:48.715026+00', 0, '', 0, 0, '2026-11-25 15:26:46.284302+00', '2026-11-25 15:26:49.013526+00', '2026-11-25 15:26:50.25986+00', NULL);
INSERT INTO public.runs VALUES (2, 2, 'measure', 0, 'dev', 50, 'single', '{"arch": "x86_64", "boot": {"rootfs": "/sys/firmware/initrd", "power_off_s": 0.0, "console_speed": 115200, "console_device": "ttyS0", "golden_timeout_s": 120, "kernel_arguments": "", "variant_timeout_s": 120}, "lava": null, "name": "single", "units": [{"lab": "local", "name": "single-1", "power": null, "backend": "labgrid", "scratch": []}], "recipe": "measure", "tested": true, "summary": "one device", "topology": {"sockets": 1, "clusters": [], "numbering": "contiguous", "numa_nodes": 1, "cores_per_l3": 2, "l3_per_socket": 1, "threads_per_core": 1}, "emulation": {"cpu_model": "Skylake-Server", "memory_mib": 512, "kernel_arguments": "tsc=reliable no_timer_check nokaslr norandmaps mitigations=off"}, "conditions": {"smt": null, "boost": null, "cool_s": 300, "governor": null, "required": [], "mitigations": null, "irq_affinity": null, "start_below_c": null}, "noise_plan": null, "health_check": "health-check", "health_check_interval_h": 24}', 'locks', '{"axes": [], "name": "locks", "curve": null, "parser": "locks", "script": "run.sh", "metrics": [{"name": "locks_per_flush", "unit": "locks", "class": "mechanism", "delta": null, "scale": "difference", "summary": "locks", "direction": "lower_is_better", "taken_from": "traced", "role_emulated": "primary", "role_hardware": "explanatory"}, {"name": "throughput", "unit": "MB/s", "class": "performance", "delta": null, "scale": "ratio", "summary": "speed", "direction": "higher_is_better", "taken_from": "untraced", "role_emulated": "secondary", "role_hardware": "primary"}], "modules": [], "summary": "counts locks", "emulated": {"blocks": 2, "settings": [""], "scenarios": null, "parameters": {}, "repetitions": {"traced": 1, "warmup": 1, "untraced": 1}, "measure_timeout_s": 300}, "files_of": null, "hardware": {"blocks": 2, "settings": [""], "scenarios": null, "parameters": {}, "repetitions": {"traced": 1, "warmup": 1, "untraced": 1}, "measure_timeout_s": 300}, "tradeoff": null, "scenarios": [{"name": "flush", "summary": "flushes", "parameters": {}}], "references": [], "checks_health": false, "reference_setting": ""}', '{"blocks": 2, "settings": [""], "scenarios": null, "parameters": {}, "repetitions": {"traced": 1, "warmup": 1, "untraced": 1}, "measure_timeout_s": 300}', '{"run.sh": "#!/bin/sh\n"}', '{"name": "measure", "figures": true, "modules": [], "summary": "small kernel", "fragments": ["base"], "toolchain": "gcc", "base_config": "tinyconfig", "arch_fragments": {}, "emulated_fragments": []}', '{"base": "CONFIG_SMP=y\n"}', '{}', 1, 2, 200954864461966, '[["baseline", "candidate"], ["candidate", "baseline"]]', NULL, 'single-1', '[]', 0, NULL, NULL, '', 'running', NULL, NULL, 1, 6, 'test/1', NULL, '2026-11-25 15:27:53.050932+00', NULL, '2026-11-25 15:26:52.848482+00', 0, '', 0, 0, '2026-11-25 15:26:51.274965+00', '2026-11-25 15:26:53.050932+00', NULL, NULL);


--
-- Data for Name: samples; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.samples VALUES (1, 1, 'flush', '', 0, 'locks_per_flush', 33, true);
INSERT INTO public.samples VALUES (1, 1, 'flush', '', 1, 'locks_per_flush', 33, false);
INSERT INTO public.samples VALUES (1, 1, 'flush', '', 0, 'throughput', 100, true);
INSERT INTO public.samples VALUES (1, 1, 'flush', '', 1, 'throughput', 100, false);
INSERT INTO public.samples VALUES (1, 2, 'flush', '', 0, 'locks_per_flush', 5, true);
INSERT INTO public.samples VALUES (1, 2, 'flush', '', 1, 'locks_per_flush', 5, false);
INSERT INTO public.samples VALUES (1, 2, 'flush', '', 0, 'throughput', 100, true);
INSERT INTO public.samples VALUES (1, 2, 'flush', '', 1, 'throughput', 100, false);
INSERT INTO public.samples VALUES (1, 3, 'flush', '', 0, 'locks_per_flush', 5, true);
INSERT INTO public.samples VALUES (1, 3, 'flush', '', 1, 'locks_per_flush', 5, false);
INSERT INTO public.samples VALUES (1, 3, 'flush', '', 0, 'throughput', 101, true);
INSERT INTO public.samples VALUES (1, 3, 'flush', '', 1, 'throughput', 101, false);
INSERT INTO public.samples VALUES (1, 4, 'flush', '', 0, 'locks_per_flush', 33, true);
INSERT INTO public.samples VALUES (1, 4, 'flush', '', 1, 'locks_per_flush', 33, false);
INSERT INTO public.samples VALUES (1, 4, 'flush', '', 0, 'throughput', 101, true);
INSERT INTO public.samples VALUES (1, 4, 'flush', '', 1, 'throughput', 101, false);


--
-- Data for Name: sign_in_throttles; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: submission_builds; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.submission_builds VALUES (1, 1, 1, 'baseline', 'measure', 'x86_64', true);
INSERT INTO public.submission_builds VALUES (2, 1, 2, 'candidate', 'measure', 'x86_64', true);
INSERT INTO public.submission_builds VALUES (3, 2, 1, 'baseline', 'measure', 'x86_64', true);
INSERT INTO public.submission_builds VALUES (4, 2, 2, 'candidate', 'measure', 'x86_64', true);


--
-- Data for Name: submissions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.submissions VALUES (1, '{"tree": "lab-tree", "blocks": 2, "recipe": null, "series": {"git": {"ref": "flush-locks", "url": "https://git.example.org/dev/linux.git", "base": null}, "mbox": null}, "backend": null, "targets": [{"plan": "locks", "settings": null, "scenarios": null, "parameters": {}, "device_type": "single"}], "priority": 50}', 'dev', NULL, NULL, 'workqueue: take fewer locks', 'workqueue: take fewer locks', '', NULL, 'lab-tree', 50, '{plan:locks,target:locks@single,type:single,verdict:improvement}', DEFAULT, 'finished', 'passed', NULL, 0, NULL, 36, '2026-11-25 15:26:46.284302+00', '2026-11-25 15:26:50.657454+00');
INSERT INTO public.submissions VALUES (2, '{"tree": "lab-tree", "blocks": 2, "recipe": null, "series": {"git": {"ref": "flush-locks", "url": "https://git.example.org/dev/linux.git", "base": null}, "mbox": null}, "backend": null, "targets": [{"plan": "locks", "settings": null, "scenarios": null, "parameters": {}, "device_type": "single"}], "priority": 50}', 'dev', NULL, NULL, 'workqueue: take fewer locks', 'workqueue: take fewer locks', '', NULL, 'lab-tree', 50, '{plan:locks,target:locks@single,type:single}', DEFAULT, 'running', NULL, NULL, NULL, NULL, 10, '2026-11-25 15:26:51.274965+00', NULL);


--
-- Data for Name: tick_faults; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: tokens; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.tokens VALUES (1, 'worker', NULL, 'e427794261163089a2ea695f70023e81a310e4ddab7c5addfd08a6b1b2784900', '{worker}', NULL, '2026-11-25 15:26:46.14569+00', NULL, '2026-11-25 15:26:47.036164+00', NULL);
INSERT INTO public.tokens VALUES (2, 'dev', 1, '0633c7872f5d13e66d547ac99d170cebe9d6ad63f10b1da4d2ac644dd7a3ab8a', '{admin}', NULL, '2026-11-25 15:26:46.14569+00', NULL, '2026-11-25 15:26:53.259285+00', NULL);


--
-- Data for Name: unsupported; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: users; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.users VALUES (1, 'dev', 'admin', '$argon2id$v=19$m=8,t=1,p=1$BLOWvuwKMmWogFUMMtayXw$AYuIrCdYAC0uGPD4aH3UwIOmwV/KT/iO+gRq+b7k6lw', '2026-11-25 15:26:46.14569+00', NULL, NULL);


--
-- Name: applies_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.applies_id_seq', 2, true);


--
-- Name: artifact_links_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.artifact_links_id_seq', 4, true);


--
-- Name: boots_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.boots_id_seq', 4, true);


--
-- Name: browser_sessions_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.browser_sessions_id_seq', 1, false);


--
-- Name: builds_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.builds_id_seq', 2, true);


--
-- Name: device_checks_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.device_checks_id_seq', 1, false);


--
-- Name: fences; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.fences', 6, true);


--
-- Name: findings_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.findings_id_seq', 1, false);


--
-- Name: health_changes_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.health_changes_id_seq', 1, false);


--
-- Name: lab_invites_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.lab_invites_id_seq', 1, false);


--
-- Name: lookups_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.lookups_id_seq', 1, false);


--
-- Name: runs_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.runs_id_seq', 2, true);


--
-- Name: submission_builds_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.submission_builds_id_seq', 4, true);


--
-- Name: submissions_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.submissions_id_seq', 2, true);


--
-- Name: tokens_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.tokens_id_seq', 2, true);


--
-- Name: unsupported_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.unsupported_id_seq', 1, false);


--
-- Name: users_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.users_id_seq', 1, true);


--
-- Name: alembic_version alembic_version_pkc; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);


--
-- Name: applies pk_applies; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.applies
    ADD CONSTRAINT pk_applies PRIMARY KEY (id);


--
-- Name: artifact_links pk_artifact_links; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.artifact_links
    ADD CONSTRAINT pk_artifact_links PRIMARY KEY (id);


--
-- Name: artifacts pk_artifacts; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT pk_artifacts PRIMARY KEY (sha256);


--
-- Name: block_attempts pk_block_attempts; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.block_attempts
    ADD CONSTRAINT pk_block_attempts PRIMARY KEY (run_id, block, attempt);


--
-- Name: boot_values pk_boot_values; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.boot_values
    ADD CONSTRAINT pk_boot_values PRIMARY KEY (boot_id, scenario, setting, metric);


--
-- Name: boots pk_boots; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.boots
    ADD CONSTRAINT pk_boots PRIMARY KEY (id);


--
-- Name: browser_sessions pk_browser_sessions; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT pk_browser_sessions PRIMARY KEY (id);


--
-- Name: builds pk_builds; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.builds
    ADD CONSTRAINT pk_builds PRIMARY KEY (id);


--
-- Name: comparisons pk_comparisons; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.comparisons
    ADD CONSTRAINT pk_comparisons PRIMARY KEY (run_id, "position");


--
-- Name: console_chunks pk_console_chunks; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.console_chunks
    ADD CONSTRAINT pk_console_chunks PRIMARY KEY (boot_id, "offset");


--
-- Name: device_checks pk_device_checks; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.device_checks
    ADD CONSTRAINT pk_device_checks PRIMARY KEY (id);


--
-- Name: devices pk_devices; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.devices
    ADD CONSTRAINT pk_devices PRIMARY KEY (name);


--
-- Name: events pk_events; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.events
    ADD CONSTRAINT pk_events PRIMARY KEY (submission_id, seq);


--
-- Name: findings pk_findings; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.findings
    ADD CONSTRAINT pk_findings PRIMARY KEY (id);


--
-- Name: health_changes pk_health_changes; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.health_changes
    ADD CONSTRAINT pk_health_changes PRIMARY KEY (id);


--
-- Name: kept_reports pk_kept_reports; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kept_reports
    ADD CONSTRAINT pk_kept_reports PRIMARY KEY (submission_id);


--
-- Name: lab_hosts pk_lab_hosts; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lab_hosts
    ADD CONSTRAINT pk_lab_hosts PRIMARY KEY (lab);


--
-- Name: lab_invites pk_lab_invites; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lab_invites
    ADD CONSTRAINT pk_lab_invites PRIMARY KEY (id);


--
-- Name: labs pk_labs; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.labs
    ADD CONSTRAINT pk_labs PRIMARY KEY (name);


--
-- Name: leases pk_leases; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.leases
    ADD CONSTRAINT pk_leases PRIMARY KEY (device_name);


--
-- Name: lookups pk_lookups; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lookups
    ADD CONSTRAINT pk_lookups PRIMARY KEY (id);


--
-- Name: run_attempts pk_run_attempts; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_attempts
    ADD CONSTRAINT pk_run_attempts PRIMARY KEY (run_id, number);


--
-- Name: runs pk_runs; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT pk_runs PRIMARY KEY (id);


--
-- Name: samples pk_samples; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples
    ADD CONSTRAINT pk_samples PRIMARY KEY (boot_id, scenario, setting, repetition, metric);


--
-- Name: sign_in_throttles pk_sign_in_throttles; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sign_in_throttles
    ADD CONSTRAINT pk_sign_in_throttles PRIMARY KEY (key);


--
-- Name: submission_builds pk_submission_builds; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submission_builds
    ADD CONSTRAINT pk_submission_builds PRIMARY KEY (id);


--
-- Name: submissions pk_submissions; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT pk_submissions PRIMARY KEY (id);


--
-- Name: tick_faults pk_tick_faults; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tick_faults
    ADD CONSTRAINT pk_tick_faults PRIMARY KEY (what, item);


--
-- Name: tokens pk_tokens; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT pk_tokens PRIMARY KEY (id);


--
-- Name: unsupported pk_unsupported; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.unsupported
    ADD CONSTRAINT pk_unsupported PRIMARY KEY (id);


--
-- Name: users pk_users; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.users
    ADD CONSTRAINT pk_users PRIMARY KEY (id);


--
-- Name: applies uq_applies_submission_id; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.applies
    ADD CONSTRAINT uq_applies_submission_id UNIQUE (submission_id);


--
-- Name: artifact_links uq_artifact_links_apply_id_build_id_run_id_kind_name; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.artifact_links
    ADD CONSTRAINT uq_artifact_links_apply_id_build_id_run_id_kind_name UNIQUE NULLS NOT DISTINCT (apply_id, build_id, run_id, kind, name);


--
-- Name: boots uq_boots_run_id_block_position_arm_attempt; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.boots
    ADD CONSTRAINT uq_boots_run_id_block_position_arm_attempt UNIQUE (run_id, block, "position", arm, attempt);


--
-- Name: browser_sessions uq_browser_sessions_digest; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT uq_browser_sessions_digest UNIQUE (digest);


--
-- Name: findings uq_findings_boot_id_kind_console_offset_title; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.findings
    ADD CONSTRAINT uq_findings_boot_id_kind_console_offset_title UNIQUE (boot_id, kind, console_offset, title);


--
-- Name: lab_invites uq_lab_invites_digest; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lab_invites
    ADD CONSTRAINT uq_lab_invites_digest UNIQUE (digest);


--
-- Name: leases uq_leases_run_id; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.leases
    ADD CONSTRAINT uq_leases_run_id UNIQUE (run_id);


--
-- Name: submission_builds uq_submission_builds_submission_id_arm_recipe_arch_emulated; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submission_builds
    ADD CONSTRAINT uq_submission_builds_submission_id_arm_recipe_arch_emulated UNIQUE (submission_id, arm, recipe, arch, emulated);


--
-- Name: submissions uq_submissions_owner_idempotency_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT uq_submissions_owner_idempotency_key UNIQUE (owner, idempotency_key);


--
-- Name: tokens uq_tokens_digest; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT uq_tokens_digest UNIQUE (digest);


--
-- Name: unsupported uq_unsupported_boot_id_scenario_setting_metric; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.unsupported
    ADD CONSTRAINT uq_unsupported_boot_id_scenario_setting_metric UNIQUE NULLS NOT DISTINCT (boot_id, scenario, setting, metric);


--
-- Name: users uq_users_name; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.users
    ADD CONSTRAINT uq_users_name UNIQUE (name);


--
-- Name: ix_applies_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_applies_state ON public.applies USING btree (state);


--
-- Name: ix_artifact_links_sha256; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_artifact_links_sha256 ON public.artifact_links USING btree (sha256);


--
-- Name: ix_boot_values_run_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_boot_values_run_id ON public.boot_values USING btree (run_id);


--
-- Name: ix_boots_device_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_boots_device_name ON public.boots USING btree (device_name, id);


--
-- Name: ix_browser_sessions_user_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_browser_sessions_user_id ON public.browser_sessions USING btree (user_id);


--
-- Name: ix_builds_key; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_builds_key ON public.builds USING btree (key);


--
-- Name: ix_builds_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_builds_state ON public.builds USING btree (state);


--
-- Name: ix_device_checks_device_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_device_checks_device_name ON public.device_checks USING btree (device_name, id);


--
-- Name: ix_device_checks_health_run_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_device_checks_health_run_id ON public.device_checks USING btree (health_run_id);


--
-- Name: ix_device_checks_noise_run_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_device_checks_noise_run_id ON public.device_checks USING btree (noise_run_id);


--
-- Name: ix_devices_device_type; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_devices_device_type ON public.devices USING btree (device_type);


--
-- Name: ix_findings_run_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_findings_run_id ON public.findings USING btree (run_id);


--
-- Name: ix_health_changes_device_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_health_changes_device_name ON public.health_changes USING btree (device_name, id);


--
-- Name: ix_lab_invites_lab; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_lab_invites_lab ON public.lab_invites USING btree (lab);


--
-- Name: ix_lookups_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_lookups_state ON public.lookups USING btree (state);


--
-- Name: ix_lookups_url; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_lookups_url ON public.lookups USING btree (url);


--
-- Name: ix_run_attempts_device_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_run_attempts_device_name ON public.run_attempts USING btree (device_name, started_at);


--
-- Name: ix_run_attempts_finished_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_run_attempts_finished_at ON public.run_attempts USING btree (finished_at);


--
-- Name: ix_run_attempts_started_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_run_attempts_started_at ON public.run_attempts USING btree (started_at, run_id, number);


--
-- Name: ix_runs_device_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_device_name ON public.runs USING btree (device_name);


--
-- Name: ix_runs_device_type; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_device_type ON public.runs USING btree (device_type);


--
-- Name: ix_runs_plan_name_device_type_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_plan_name_device_type_id ON public.runs USING btree (plan_name, device_type, id);


--
-- Name: ix_runs_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_state ON public.runs USING btree (state);


--
-- Name: ix_runs_submission_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_submission_id ON public.runs USING btree (submission_id);


--
-- Name: ix_runs_wanted_device; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_wanted_device ON public.runs USING btree (wanted_device);


--
-- Name: ix_samples_run_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_samples_run_id ON public.samples USING btree (run_id);


--
-- Name: ix_sign_in_throttles_since; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_sign_in_throttles_since ON public.sign_in_throttles USING btree (since);


--
-- Name: ix_submission_builds_build_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submission_builds_build_id ON public.submission_builds USING btree (build_id);


--
-- Name: ix_submissions_created_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_created_at ON public.submissions USING btree (created_at);


--
-- Name: ix_submissions_ended; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_ended ON public.submissions USING btree (COALESCE(finished_at, 'infinity'::timestamp with time zone), id);


--
-- Name: ix_submissions_facets; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_facets ON public.submissions USING gin (facets);


--
-- Name: ix_submissions_outcome; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_outcome ON public.submissions USING btree (outcome, id);


--
-- Name: ix_submissions_owner; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_owner ON public.submissions USING btree (owner, id);


--
-- Name: ix_submissions_priority; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_priority ON public.submissions USING btree (priority, id);


--
-- Name: ix_submissions_search; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_search ON public.submissions USING gin (search public.gin_trgm_ops);


--
-- Name: ix_submissions_series_key; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_series_key ON public.submissions USING btree (series_key);


--
-- Name: ix_submissions_title; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_title ON public.submissions USING btree (title, id);


--
-- Name: ix_submissions_tree; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_tree ON public.submissions USING btree (tree, id);


--
-- Name: ix_submissions_unfinished; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_submissions_unfinished ON public.submissions USING btree (id) WHERE ((state)::text <> 'finished'::text);


--
-- Name: ix_tokens_user_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_tokens_user_id ON public.tokens USING btree (user_id);


--
-- Name: ix_unsupported_run_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_unsupported_run_id ON public.unsupported USING btree (run_id);


--
-- Name: uq_builds_key_live; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX uq_builds_key_live ON public.builds USING btree (key) WHERE ((outcome IS NULL) OR ((outcome)::text = 'passed'::text));


--
-- Name: uq_device_checks_unfinished; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX uq_device_checks_unfinished ON public.device_checks USING btree (device_name) WHERE (finished_at IS NULL);


--
-- Name: applies fk_applies_submission_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.applies
    ADD CONSTRAINT fk_applies_submission_id FOREIGN KEY (submission_id) REFERENCES public.submissions(id);


--
-- Name: artifact_links fk_artifact_links_apply_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.artifact_links
    ADD CONSTRAINT fk_artifact_links_apply_id FOREIGN KEY (apply_id) REFERENCES public.applies(id);


--
-- Name: artifact_links fk_artifact_links_build_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.artifact_links
    ADD CONSTRAINT fk_artifact_links_build_id FOREIGN KEY (build_id) REFERENCES public.builds(id);


--
-- Name: artifact_links fk_artifact_links_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.artifact_links
    ADD CONSTRAINT fk_artifact_links_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: artifact_links fk_artifact_links_sha256; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.artifact_links
    ADD CONSTRAINT fk_artifact_links_sha256 FOREIGN KEY (sha256) REFERENCES public.artifacts(sha256);


--
-- Name: block_attempts fk_block_attempts_device_name; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.block_attempts
    ADD CONSTRAINT fk_block_attempts_device_name FOREIGN KEY (device_name) REFERENCES public.devices(name);


--
-- Name: block_attempts fk_block_attempts_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.block_attempts
    ADD CONSTRAINT fk_block_attempts_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: boot_values fk_boot_values_boot_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.boot_values
    ADD CONSTRAINT fk_boot_values_boot_id FOREIGN KEY (boot_id) REFERENCES public.boots(id);


--
-- Name: boot_values fk_boot_values_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.boot_values
    ADD CONSTRAINT fk_boot_values_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: boots fk_boots_device_name; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.boots
    ADD CONSTRAINT fk_boots_device_name FOREIGN KEY (device_name) REFERENCES public.devices(name);


--
-- Name: boots fk_boots_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.boots
    ADD CONSTRAINT fk_boots_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: browser_sessions fk_browser_sessions_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT fk_browser_sessions_user_id FOREIGN KEY (user_id) REFERENCES public.users(id);


--
-- Name: comparisons fk_comparisons_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.comparisons
    ADD CONSTRAINT fk_comparisons_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: console_chunks fk_console_chunks_boot_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.console_chunks
    ADD CONSTRAINT fk_console_chunks_boot_id FOREIGN KEY (boot_id) REFERENCES public.boots(id);


--
-- Name: device_checks fk_device_checks_device_name; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.device_checks
    ADD CONSTRAINT fk_device_checks_device_name FOREIGN KEY (device_name) REFERENCES public.devices(name);


--
-- Name: device_checks fk_device_checks_health_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.device_checks
    ADD CONSTRAINT fk_device_checks_health_run_id FOREIGN KEY (health_run_id) REFERENCES public.runs(id);


--
-- Name: device_checks fk_device_checks_noise_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.device_checks
    ADD CONSTRAINT fk_device_checks_noise_run_id FOREIGN KEY (noise_run_id) REFERENCES public.runs(id);


--
-- Name: events fk_events_submission_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.events
    ADD CONSTRAINT fk_events_submission_id FOREIGN KEY (submission_id) REFERENCES public.submissions(id);


--
-- Name: findings fk_findings_boot_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.findings
    ADD CONSTRAINT fk_findings_boot_id FOREIGN KEY (boot_id) REFERENCES public.boots(id);


--
-- Name: findings fk_findings_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.findings
    ADD CONSTRAINT fk_findings_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: health_changes fk_health_changes_device_name; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.health_changes
    ADD CONSTRAINT fk_health_changes_device_name FOREIGN KEY (device_name) REFERENCES public.devices(name);


--
-- Name: health_changes fk_health_changes_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.health_changes
    ADD CONSTRAINT fk_health_changes_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: kept_reports fk_kept_reports_submission_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kept_reports
    ADD CONSTRAINT fk_kept_reports_submission_id FOREIGN KEY (submission_id) REFERENCES public.submissions(id);


--
-- Name: lab_hosts fk_lab_hosts_token_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lab_hosts
    ADD CONSTRAINT fk_lab_hosts_token_id FOREIGN KEY (token_id) REFERENCES public.tokens(id);


--
-- Name: leases fk_leases_device_name; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.leases
    ADD CONSTRAINT fk_leases_device_name FOREIGN KEY (device_name) REFERENCES public.devices(name);


--
-- Name: leases fk_leases_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.leases
    ADD CONSTRAINT fk_leases_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: run_attempts fk_run_attempts_device_name; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_attempts
    ADD CONSTRAINT fk_run_attempts_device_name FOREIGN KEY (device_name) REFERENCES public.devices(name);


--
-- Name: run_attempts fk_run_attempts_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_attempts
    ADD CONSTRAINT fk_run_attempts_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: runs fk_runs_baseline_build_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_baseline_build_id FOREIGN KEY (baseline_build_id) REFERENCES public.builds(id);


--
-- Name: runs fk_runs_candidate_build_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_candidate_build_id FOREIGN KEY (candidate_build_id) REFERENCES public.builds(id);


--
-- Name: runs fk_runs_device_name; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_device_name FOREIGN KEY (device_name) REFERENCES public.devices(name);


--
-- Name: runs fk_runs_submission_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_submission_id FOREIGN KEY (submission_id) REFERENCES public.submissions(id);


--
-- Name: runs fk_runs_wanted_device; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_wanted_device FOREIGN KEY (wanted_device) REFERENCES public.devices(name);


--
-- Name: samples fk_samples_boot_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples
    ADD CONSTRAINT fk_samples_boot_id FOREIGN KEY (boot_id) REFERENCES public.boots(id);


--
-- Name: samples fk_samples_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples
    ADD CONSTRAINT fk_samples_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: submission_builds fk_submission_builds_build_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submission_builds
    ADD CONSTRAINT fk_submission_builds_build_id FOREIGN KEY (build_id) REFERENCES public.builds(id);


--
-- Name: submission_builds fk_submission_builds_submission_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submission_builds
    ADD CONSTRAINT fk_submission_builds_submission_id FOREIGN KEY (submission_id) REFERENCES public.submissions(id);


--
-- Name: submissions fk_submissions_retry_of; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.submissions
    ADD CONSTRAINT fk_submissions_retry_of FOREIGN KEY (retry_of) REFERENCES public.submissions(id);


--
-- Name: tokens fk_tokens_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT fk_tokens_user_id FOREIGN KEY (user_id) REFERENCES public.users(id);


--
-- Name: unsupported fk_unsupported_boot_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.unsupported
    ADD CONSTRAINT fk_unsupported_boot_id FOREIGN KEY (boot_id) REFERENCES public.boots(id);


--
-- Name: unsupported fk_unsupported_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.unsupported
    ADD CONSTRAINT fk_unsupported_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- PostgreSQL database dump complete
--


