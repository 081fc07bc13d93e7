# SPDX-License-Identifier: BSD-3-Clause
"""Where fields of the ConnectX's commands stand: ours and the model's against DPDK's mlx5_prm.h.

usage: check_prm.py MLX5_PRM_H PRM_H DEVX_FIELDS_H
"""
import re
import sys

# Of ours: structure and field of DPDK's; a structure in another stands at its own start.
COMMAND = "create_rq_in"  # its first 64 bits are every command's
OURS = {
    "PRM_OPCODE": (COMMAND, "opcode"), "PRM_OP_MOD": (COMMAND, "op_mod"),
    "PRM_STATUS": ("create_rq_out", "status"), "PRM_SYNDROME": ("create_rq_out", "syndrome"),
    "PRM_NUMBER": ("create_rq_out", "rqn"),
    "PRM_CAP_LOG_MAX_CQ_SIZE": ("cmd_hca_cap", "log_max_cq_sz"),
    "PRM_CAP_SQ_TS_FORMAT": ("cmd_hca_cap", "sq_ts_format"),
    "PRM_CAP_RQ_TS_FORMAT": ("cmd_hca_cap", "rq_ts_format"),
    "PRM_CAP_LOG_MAX_WQ_SIZE": ("cmd_hca_cap", "log_max_wq_sz"),
    "PRM_ETH_INLINE_MODE": ("per_protocol_networking_offload_caps", "wqe_inline_mode"),
    "PRM_CREATE_CQ_UMEM_OFFSET": ("create_cq_in", "cq_umem_offset"),
    "PRM_CREATE_CQ_UMEM": ("create_cq_in", "cq_umem_id"),
    "PRM_CREATE_CQ_UMEM_VALID": ("create_cq_in", "cq_umem_valid"),
    "PRM_CQC_RECORD_VALID": ("cqc", "dbr_umem_valid"), "PRM_CQC_CQE_SIZE": ("cqc", "cqe_sz"),
    "PRM_CQC_COLLAPSED": ("cqc", "cc"), "PRM_CQC_OVERRUN_IGNORE": ("cqc", "oi"),
    "PRM_CQC_RECORD_UMEM": ("cqc", "dbr_umem_id"), "PRM_CQC_LOG_SIZE": ("cqc", "log_cq_size"),
    "PRM_CQC_UAR": ("cqc", "uar_page"), "PRM_CQC_EQN": ("cqc", "c_eqn"),
    "PRM_CQC_LOG_PAGE": ("cqc", "log_page_size"), "PRM_CQC_RECORD_OFFSET": ("cqc", "dbr_addr"),
    "PRM_ALLOC_Q_COUNTER_NUMBER": ("alloc_q_counter_out", "counter_set_id"),
    "PRM_QUERY_Q_COUNTER_NUMBER": ("query_q_counter_in", "counter_set_id"),
    "PRM_Q_COUNTER_OUT_OF_BUFFER": ("query_q_counter_out", "out_of_buffer"),
    "PRM_WQ_TYPE": ("wq", "wq_type"), "PRM_WQ_PADDING": ("wq", "end_padding_mode"),
    "PRM_WQ_LOG_STRIDES": ("wq", "single_wqe_log_num_of_strides"),
    "PRM_WQ_LOG_STRIDE_BYTES": ("wq", "single_stride_log_num_of_bytes"),
    "PRM_WQ_PD": ("wq", "pd"), "PRM_WQ_UAR": ("wq", "uar_page"),
    "PRM_WQ_RECORD_OFFSET": ("wq", "dbr_addr"), "PRM_WQ_LOG_STRIDE": ("wq", "log_wq_stride"),
    "PRM_WQ_LOG_PAGE": ("wq", "log_wq_pg_sz"), "PRM_WQ_LOG_SIZE": ("wq", "log_wq_sz"),
    "PRM_WQ_RECORD_VALID": ("wq", "dbr_umem_valid"), "PRM_WQ_UMEM_VALID": ("wq", "wq_umem_valid"),
    "PRM_WQ_RECORD_UMEM": ("wq", "dbr_umem_id"), "PRM_WQ_UMEM": ("wq", "wq_umem_id"),
    "PRM_WQ_UMEM_OFFSET": ("wq", "wq_umem_offset"),
    "PRM_MODIFY_FROM": ("modify_rq_in", "rq_state"), "PRM_MODIFY_NUMBER": ("modify_rq_in", "rqn"),
    "PRM_QUEUE_STATE": ("rqc", "state"), "PRM_QUEUE_TS_FORMAT": ("rqc", "ts_format"),
    "PRM_QUEUE_CQ": ("rqc", "cqn"), "PRM_RQC_KEEP_VLAN": ("rqc", "vsd"),
    "PRM_RQC_FLUSH_IN_ERROR": ("rqc", "flush_in_error_en"),
    "PRM_RQC_COUNTER": ("rqc", "counter_set_id"),
    "PRM_SQC_FLUSH_IN_ERROR": ("sqc", "flush_in_error_en"),
    "PRM_SQC_MULTI_PACKET": ("sqc", "allow_multi_pkt_send_wqe"),
    "PRM_SQC_INLINE_MODE": ("sqc", "min_wqe_inline_mode"),
    "PRM_SQC_TIS_COUNT": ("sqc", "tis_lst_sz"), "PRM_SQC_TIS": ("sqc", "tis_num_0"),
    "PRM_TISC_DOMAIN": ("tisc", "transport_domain"),
}
# Whatever of these holds of a receive queue holds of a send queue.
SAME = (("rqc", "sqc", ("state", "ts_format", "cqn", "wq")),
        ("create_rq_in", "create_sq_in", ("ctx",)),
        ("modify_rq_in", "modify_sq_in", ("ctx", "modify_bitmask")))
# Bytes: where a part begins, or how long a command or an answer is.
BYTES = {
    "PRM_CREATE_CQ_CONTEXT": ("create_cq_in", "cq_context"), "PRM_CREATE_CQ_IN_BYTES": ("create_cq_in", None),
    "PRM_QUEUE_CONTEXT": ("create_rq_in", "ctx"), "PRM_QUEUE_WQ": ("rqc", "wq"),
    "PRM_WQ_BYTES": ("wq", None), "PRM_OUT_BYTES": ("create_rq_out", None),
    "PRM_ALLOC_Q_COUNTER_IN_BYTES": ("alloc_q_counter_in", None),
    "PRM_QUERY_Q_COUNTER_IN_BYTES": ("query_q_counter_in", None),
    "PRM_QUERY_Q_COUNTER_OUT_BYTES": ("query_q_counter_out", None),
    "PRM_QUERY_RQ_IN_BYTES": ("query_rq_in", None),
    "PRM_QUERY_CAP_IN_BYTES": ("query_hca_cap_in", None), "PRM_CAP": ("query_hca_cap_out", "capability"),
    "PRM_ALLOC_DOMAIN_IN_BYTES": ("alloc_transport_domain_in", None),
    "PRM_TIS_CONTEXT": ("create_tis_in", "ctx"),
}
# Of the model's: those that are not ours too.
MODEL = {
    "OPCODE": (COMMAND, "opcode"), "IN_NUMBER": ("modify_rq_in", "rqn"),
    "OUT_STATUS": ("create_rq_out", "status"), "OUT_SYNDROME": ("create_rq_out", "syndrome"),
    "OUT_NUMBER": ("create_rq_out", "rqn"), "OUT_Q_COUNTER": ("alloc_q_counter_out", "counter_set_id"),
    "OUT_FLOW_COUNTER": ("alloc_flow_counter_out", "flow_counter_id"),
    "CQC_OVERRUN_IGNORED": ("cqc", "oi"), "CQC_COMPRESS": ("cqc", "cqe_comp_en"),
    "CQC_MINI_FORMAT": ("cqc", "mini_cqe_res_format"), "CQC_RECORD_UMEM": ("cqc", "dbr_umem_id"),
    "CQC_MINI_FORMAT_EXT": ("cqc", "mini_cqe_res_format_ext"), "CQC_LOG_SIZE": ("cqc", "log_cq_size"),
    "CQC_UAR": ("cqc", "uar_page"), "CREATE_CQ_UMEM": ("create_cq_in", "cq_umem_id"),
    "WQ_TYPE": ("wq", "wq_type"), "WQ_UAR": ("wq", "uar_page"),
    "WQ_LOG_STRIDE": ("wq", "log_wq_stride"), "WQ_LOG_SIZE": ("wq", "log_wq_sz"),
    "WQ_LOG_STRIDES": ("wq", "single_wqe_log_num_of_strides"),
    "WQ_LOG_STRIDE_SIZE": ("wq", "single_stride_log_num_of_bytes"),
    "WQ_RECORD_UMEM": ("wq", "dbr_umem_id"), "WQ_UMEM": ("wq", "wq_umem_id"),
    "RQC_KEEP_VLAN": ("rqc", "vsd"), "RQC_MEMORY_TYPE": ("rqc", "mem_rq_type"),
    "RQC_FLUSH_IN_ERROR": ("rqc", "flush_in_error_en"), "RQC_COUNTER": ("rqc", "counter_set_id"),
    "RQC_CQ": ("rqc", "cqn"), "SQC_CQ": ("sqc", "cqn"), "QUEUE_STATE": ("rqc", "state"),
    "MODIFY_FROM": ("modify_rq_in", "rq_state"), "TISC_TRANSPORT_DOMAIN": ("tisc", "transport_domain"),
    "RQTC_SIZE": ("rqtc", "rqt_actual_size"), "TIRC_TYPE": ("tirc", "disp_type"),
    "TIRC_INLINE_RQ": ("tirc", "inline_rqn"), "TIRC_TABLE": ("tirc", "indirect_table"),
}
# Numbers that are no positions: DPDK's macro, or a name of an enumeration.
NUMBERS = {
    "PRM_WQ_CYCLIC": "MLX5_WQ_TYPE_CYCLIC", "PRM_WQ_CYCLIC_STRIDING": "MLX5_WQ_TYPE_CYCLIC_STRIDING_RQ",
}
STRUCT = re.compile(r"^(struct|union) mlx5_ifc_(\w+)_bits \{\n(.*?)^\};", re.M | re.S)
MEMBER = re.compile(r"(?:u8|(?:struct|union) mlx5_ifc_(\w+)_bits)\s+(\w+)((?:\[\w*\])*);")


class Prm:
    """DPDK's structures, each a list of members."""

    def __init__(self, text):
        self.text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.found = {name: (kind, body) for kind, name, body in STRUCT.findall(self.text)}

    def members(self, name):
        """(member, first bit, bits)"""
        kind, body = self.found[name]
        at = 0
        for inner, member, counts in MEMBER.findall(re.sub(r"\s+", " ", body)):
            bits = self.bits(inner) if inner else 1
            for count in re.findall(r"\[(\w*)\]", counts):
                bits *= int(count, 0) if count else 0
            yield member, 0 if kind == "union" else at, bits
            at += bits

    def bits(self, name):
        return max((at + bits for _, at, bits in self.members(name)), default=0)

    def field(self, name, member):
        return next(((at, bits) for found, at, bits in self.members(name) if found == member))


def defines(text, macro):
    """Name -> (bit, width or None for a plain number)."""
    values = {}
    # a line that goes on with the next is one, too
    for name, bit, width in re.findall(r"^#define (\w+)[\s\\]+%s\((\w+), (\d+)\)" % macro, text, re.M):
        if bit.isdigit():
            values[name] = (int(bit), int(width))
    return values


def main(prm_path, ours_path, model_path):
    with open(prm_path, encoding="utf-8") as file:
        prm = Prm(file.read())
    with open(ours_path, encoding="utf-8") as file:
        ours = file.read()
    with open(model_path, encoding="utf-8") as file:
        model = file.read()
    wrong = []
    numbers = {name: int(value, 0) for name, value in
               re.findall(r"^#define (PRM_\w+) (\w+?)u?(?:\s|$)", ours, re.M) if value[0].isdigit()}
    compared = 0
    for fields, table, strict in ((defines(ours, "PRM_FIELD"), OURS, True),
                                  (defines(model, "SOFT_FIELD"), MODEL, False)):
        for name, value in fields.items():
            if name not in table:
                if strict:
                    wrong.append("%s: say which of DPDK's it is, in check_prm.py" % name)
                continue
            expected = prm.field(*table[name])
            compared += 1
            if value != expected:
                wrong.append("%s is bit %d, %d wide; DPDK: bit %d, %d wide" % (name, *value, *expected))
    for name, (struct, member) in OURS.items():
        if name in numbers:
            compared += 1
            if numbers[name] != prm.field(struct, member)[0]:
                wrong.append("%s is bit %d; DPDK: %d" % (name, numbers[name], prm.field(struct, member)[0]))
    for name, (struct, member) in BYTES.items():
        if name not in numbers:
            continue
        expected = prm.field(struct, member)[0] if member else prm.bits(struct)
        compared += 1
        if numbers[name] * 8 != expected:
            wrong.append("%s is %d bytes; DPDK: %d bits" % (name, numbers[name], expected))
    for one, other, members in SAME:
        for member in members:
            if prm.field(one, member)[0] != prm.field(other, member)[0]:
                wrong.append("%s stands elsewhere in %s than in %s" % (member, one, other))
    for name, theirs in NUMBERS.items():
        compared += 1
        expected = re.search(r"\b%s\s*=?\s*(0[xX][0-9a-fA-F]+|\d+)" % theirs, prm.text).group(1)
        if numbers[name] != int(expected, 0):
            wrong.append("%s is %d; DPDK: %s" % (name, numbers[name], expected))
    opcodes = dict(re.findall(r"MLX5_CMD_OP_(\w+) = (0[xX][0-9a-fA-F]+)", prm.text))
    body = re.search(r"enum prm_opcode \{(.*?)\}", ours, re.S).group(1)
    for name, value in re.findall(r"PRM_(\w+) = (\w+)", body):
        compared += 1
        if int(opcodes[name], 16) != int(value, 16):
            wrong.append("PRM_%s is %s; DPDK: %s" % (name, value, opcodes[name]))
    for line in wrong:
        print(line)
    print("%d positions and numbers compared" % compared)
    return 1 if wrong or compared < 60 else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
