/* SPDX-License-Identifier: MIT */
/* Of CUDA's header, what TensorRT's needs. */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
