/* A driver of CUDA's that drives nothing, under its name (libcuda.so.1): where there is none, cuDNN
 * leaves out the engines that it compiles. It takes what they have compiled, and is asked to run
 * none of it. Arguments that it does not look at are left out. */
#define SUCCESS       0
#define NO_DEVICE     100
#define NOT_SUPPORTED 801

/* What is there for cuDNN to look up, and nobody calls. */
#define UNUSED_MAP(X)                     \
    X(cuCtxGetCurrent)                    \
    X(cuCtxGetLimit)                      \
    X(cuCtxPopCurrent)                    \
    X(cuCtxPushCurrent)                   \
    X(cuDeviceGet)                        \
    X(cuKernelGetAttribute)               \
    X(cuKernelSetAttribute)               \
    X(cuLaunchCooperativeKernel)          \
    X(cuLaunchKernel)                     \
    X(cuLaunchKernelEx)                   \
    X(cuLibraryLoadFromFile)              \
    X(cuLinkAddData)                      \
    X(cuLinkComplete)                     \
    X(cuLinkCreate)                       \
    X(cuLinkDestroy)                      \
    X(cuOccupancyMaxPotentialClusterSize) \
    X(cuStreamGetCtx)

#define DEFINE_UNUSED(name)   \
    int name(void);           \
    int name(void)            \
    {                         \
        return NOT_SUPPORTED; \
    }

UNUSED_MAP(DEFINE_UNUSED)

int cuInit(void);
int cuLibraryUnload(void);
int cuDriverGetVersion(int *ret_version);
int cuDeviceGetCount(int *ret_count);
int cuGetErrorName(int error, const char **ret_name);
int cuGetErrorString(int error, const char **ret_text);
int cuLibraryLoadData(void **ret_library);
int cuLibraryGetKernel(void **ret_kernel);

static char something; // that handles point to

int cuInit(void)
{
    return NO_DEVICE;
}

int cuLibraryUnload(void)
{
    return SUCCESS;
}

int cuDriverGetVersion(int *ret_version)
{
    *ret_version = 13000;
    return SUCCESS;
}

int cuDeviceGetCount(int *ret_count)
{
    *ret_count = 0;
    return SUCCESS;
}

int cuGetErrorName(int error, const char **ret_name)
{
    (void)error;
    *ret_name = "an error of the driver that drives nothing";
    return SUCCESS;
}

int cuGetErrorString(int error, const char **ret_text)
{
    return cuGetErrorName(error, ret_text);
}

int cuLibraryLoadData(void **ret_library)
{
    *ret_library = &something;
    return SUCCESS;
}

int cuLibraryGetKernel(void **ret_kernel)
{
    *ret_kernel = &something;
    return SUCCESS;
}
